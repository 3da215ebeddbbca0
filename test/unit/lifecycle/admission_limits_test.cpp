#include "lifecycle/admission_checks.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using Catch::Contains;

namespace {

AdmissionRules able() {
    AdmissionRules rules;
    rules.capabilities.fine_limits = true;
    rules.capabilities.networks = true;
    rules.capabilities.memory_volumes = true;
    return rules;
}

std::string limit_error(const std::string& key, const std::string& value) {
    runtime::ResourceLimits limits;
    auto checked = check_fine_limits({{key, value}}, able(), limits);
    return checked ? "" : checked.error().message();
}

model::CreateRequest with(const std::string& key, const std::string& value) {
    model::CreateRequest request;
    request.extensions.emplace_back(key, value);
    return request;
}

std::string network_error(const std::string& key, const std::string& value) {
    auto choice = network_choice(with(key, value), able());
    return choice ? "" : choice.error().message();
}

std::string memory_error(const std::string& value) {
    auto volumes = memory_volumes(with("opensandbox.io/tmpfs", value), able());
    return volumes ? "" : volumes.error().message();
}

}  // namespace

TEST_CASE("limits beyond cpu and memory are read, the disk's under any of its names") {
    runtime::ResourceLimits limits;
    REQUIRE(check_fine_limits({{"ephemeral-storage", "1Gi"},
                               {"pids", "64"},
                               {"open-files", "256"},
                               {"network-rate", "1Mi"},
                               {"io-read-rate", "2M"},
                               {"io-write-rate", "3M"},
                               {"bandwidth", "ignored"}},
                              able(), limits));
    CHECK(limits.disk_bytes == 1ULL << 30);
    CHECK(limits.pids == 64);
    CHECK(limits.open_files == 256);
    CHECK(limits.network_rate == 1ULL << 20);
    CHECK(limits.io_read_rate == 2'000'000);
    CHECK(limits.io_write_rate == 3'000'000);
    for (const char* name : {"disk", "storage"}) {
        runtime::ResourceLimits other;
        REQUIRE(check_fine_limits({{name, "16Mi"}}, able(), other));
        CHECK(other.disk_bytes == 16ULL << 20);
    }
}

TEST_CASE("limits out of bounds are refused by name and rule") {
    CHECK_THAT(limit_error("disk", "15Mi"),
               Contains("resourceLimits.disk") && Contains("16Mi to 16Ti"));
    CHECK_THAT(limit_error("ephemeral-storage", "lots"), Contains("ephemeral-storage: 'lots'"));
    CHECK_THAT(limit_error("pids", "15"), Contains("from 16 to 4194304"));
    CHECK_THAT(limit_error("open-files", "255"), Contains("from 256 to 1048576"));
    CHECK_THAT(limit_error("network-rate", "1"), Contains("8Ki to 32Gi"));
    CHECK_THAT(limit_error("io-read-rate", "0"), Contains("io-read-rate"));
    CHECK_THAT(limit_error("io-write-rate", "64Gi"), Contains("io-write-rate"));
    runtime::ResourceLimits limits;
    auto both = check_fine_limits({{"disk", "1Gi"}, {"storage", "2Gi"}}, able(), limits);
    REQUIRE_FALSE(both);
    CHECK_THAT(both.error().message(), Contains("must not differ"));
}

TEST_CASE("where the runtime has no such limits they are ignored, as the contract has it") {
    runtime::ResourceLimits limits;
    REQUIRE(check_fine_limits({{"disk", "nonsense"}}, AdmissionRules(), limits));
    CHECK(limits.disk_bytes == 0);
}

TEST_CASE("a network is the default one, none, or one of that name") {
    CHECK_FALSE(network_choice(with("other", "x"), able())->chosen);
    auto none = network_choice(with("opensandbox.io/network", "none"), able());
    CHECK(none->none);
    CHECK(none->shared.empty());
    auto usual = network_choice(with("opensandbox.io/network", "default"), able());
    CHECK(usual->chosen);
    CHECK_FALSE(usual->none);
    CHECK(usual->shared.empty());
    CHECK(network_choice(with("opensandbox.io/network", "lab-1"), able())->shared == "lab-1");
    for (const char* wrong : {"", "Lab", "-lab", "a/b", "a.b"}) {
        CAPTURE(wrong);
        CHECK_THAT(network_error("opensandbox.io/network", wrong),
                   Contains("extensions.opensandbox.io/network"));
    }
    CHECK(network_choice(with("opensandbox.io/hostname", "web"), able())->hostname == "web");
    CHECK_THAT(network_error("opensandbox.io/hostname", "localhost"), Contains("hostname"));
    CHECK_THAT(network_error("opensandbox.io/hostname", std::string(64, 'a')), Contains("1 to 63"));
}

TEST_CASE("published ports are a list of different ports") {
    auto choice = network_choice(with("opensandbox.io/publish", "8080, 5432"), able());
    REQUIRE(choice);
    CHECK(choice->published == std::vector<std::uint16_t>{8080, 5432});
    for (const char* wrong : {"", "0", "65536", "44772", "http", "80,80", "80,,81"}) {
        CAPTURE(wrong);
        CHECK_THAT(network_error("opensandbox.io/publish", wrong),
                   Contains("extensions.opensandbox.io/publish"));
    }
    std::string many = "1";
    for (int port = 2; port <= 17; ++port)
        many += "," + std::to_string(port);
    CHECK_THAT(network_error("opensandbox.io/publish", many), Contains("at most 16"));
}

TEST_CASE("file systems in memory are paths with sizes") {
    auto volumes = memory_volumes(with("opensandbox.io/tmpfs", "/scratch=64Mi, /a=b=1Gi"), able());
    REQUIRE(volumes);
    REQUIRE(volumes->size() == 2);
    CHECK(volumes->at(0).mount_path == "/scratch");
    CHECK(volumes->at(0).size == 64ULL << 20);
    CHECK(volumes->at(1).mount_path == "/a=b");
    for (const char* wrong : {"", "/a", "a=1Mi", "/a=1", "/a/../b=1Mi", "/proc/x=1Mi", "/=1Mi",
                              "/dev=1Mi", "/a=1Mi,/a=2Mi"}) {
        CAPTURE(wrong);
        CHECK_THAT(memory_error(wrong), Contains("extensions.opensandbox.io/tmpfs"));
    }
    CHECK_THAT(memory_error("/1=1Mi,/2=1Mi,/3=1Mi,/4=1Mi,/5=1Mi,/6=1Mi,/7=1Mi,/8=1Mi,/9=1Mi"),
               Contains("at most 8"));
}

TEST_CASE("a runtime that cannot says so instead of leaving it out") {
    for (const char* key :
         {"opensandbox.io/network", "opensandbox.io/hostname", "opensandbox.io/publish"}) {
        auto choice = network_choice(with(key, "80"), AdmissionRules());
        REQUIRE_FALSE(choice);
        CHECK_THAT(choice.error().message(), Contains(key) && Contains("does not support"));
    }
    CHECK_FALSE(memory_volumes(with("opensandbox.io/tmpfs", "/a=1Mi"), AdmissionRules()));
}
