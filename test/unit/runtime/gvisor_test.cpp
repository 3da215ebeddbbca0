#include "json/document.hpp"
#include "runtime/native/host/gvisor_program.hpp"
#include "runtime/native/inside/gvisor_bundle.hpp"
#include "runtime/native/inside/gvisor_slot.hpp"
#include "runtime/native/spawner/sandboxes/exit_reason.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::native;
using Catch::Contains;
using opensandbox::test_support::ScratchDirectory;

namespace {

CreateRequest asked_for() {
    CreateRequest request;
    request.id = "b7c1f0de-5a3e-4a52-9b55-0d7f3f1f4a11";
    request.plan.network.hostname = "box";
    request.plan.entrypoint = {"tail", "-f", "/dev/null"};
    request.agent_token = "secret";
    request.plan.image.layers = {"/var/lib/opensandbox/images/layer"};
    request.volumes = {
        {.name = "data", .source = "/srv/data", .target = "/data", .read_only = true},
        {.name = "fast", .target = "/fast", .size = 1 << 20}};
    return request;
}

json::value bundle() {
    return json::parse(format_bundle(asked_for())).value();
}

const json::object* mount_at(const json::value& document, std::string_view target) {
    for (const json::value& item : document.at("mounts").as_array()) {
        if (item.at("destination").as_string() == target) return &item.as_object();
    }
    return nullptr;
}

bool has(const json::value& list, std::string_view text) {
    for (const json::value& item : list.as_array()) {
        if (item.as_string() == text) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("gvisor: a bundle has volumes, names and a /tmp of the writable layer", "[gvisor]") {
    const json::value document = bundle();
    CHECK(document.at("root").at("path").as_string() == "/new");
    CHECK(document.at("hostname").as_string() == "box");
    const json::object* data = mount_at(document, "/data");
    REQUIRE(data);
    CHECK(data->at("type").as_string() == "bind");
    CHECK(data->at("source").as_string() == gvisor_volume_path(0).c_str());
    CHECK(has(data->at("options"), "ro"));
    const json::object* fast = mount_at(document, "/fast");
    REQUIRE(fast);
    CHECK(fast->at("type").as_string() == "tmpfs");
    CHECK(has(fast->at("options"), "size=1048576"));
    for (const char* path : {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/tmp"})
        CHECK(mount_at(document, path));
}

TEST_CASE("gvisor: a bundle tells nothing that is a secret or the host's", "[gvisor]") {
    const std::string text = format_bundle(asked_for());
    CHECK_THAT(text, !Contains("secret") && !Contains("/var/lib") && !Contains("/srv"));
}

TEST_CASE("gvisor: inside there are the capabilities of a native sandbox, and no more rights",
          "[gvisor]") {
    const json::value document = bundle();
    const json::value& process = document.at("process");
    CHECK(process.at("noNewPrivileges").as_bool());
    for (const char* set : {"bounding", "effective", "permitted"}) {
        const json::value& names = process.at("capabilities").at(set);
        CHECK(names.as_array().size() == 11);
        for (const char* missing : {"CAP_SYS_ADMIN", "CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_MKNOD"})
            CHECK_FALSE(has(names, missing));
    }
    CHECK_FALSE(process.at("capabilities").as_object().contains("ambient"));
}

TEST_CASE("gvisor: a guest reads what it was given, without what is the host's", "[gvisor]") {
    const std::vector<sock_filter> filter{{6, 0, 0, 0x7fff0000}, {6, 0, 0, 1}};
    auto read = parse_guest_request(format_guest_request(asked_for(), filter));
    REQUIRE(read);
    CHECK(read->request.agent_token == "secret");
    CHECK(read->request.plan.entrypoint == asked_for().plan.entrypoint);
    CHECK(read->request.plan.image.layers.empty());
    REQUIRE(read->request.volumes.size() == 2);
    CHECK(read->request.volumes[0].target == "/data");
    CHECK(read->request.volumes[0].source.empty());
    REQUIRE(read->filter.size() == 2);
    CHECK(read->filter[1].k == 1);
}

TEST_CASE("gvisor: a request that is cut anywhere is refused", "[gvisor]") {
    const std::string whole = format_guest_request(asked_for(), {{6, 0, 0, 1}});
    for (std::size_t size = 0; size < whole.size(); ++size) {
        // Between two instructions a shorter filter begins: the guest's file is never cut there.
        if (size == whole.size() - sizeof(sock_filter)) continue;
        CHECK(!parse_guest_request(std::string_view(whole).substr(0, size)).has_value());
    }
}

TEST_CASE("gvisor: a program that cannot run sandboxes is refused with the reason", "[gvisor]") {
    const ScratchDirectory scratch;
    const std::filesystem::path program = scratch.path / "runsc";
    CHECK(find_gvisor(program.string()).error().code() == ErrorCode::not_found);
    std::ofstream(program) << "#!/bin/sh\n";
    CHECK_THAT(find_gvisor(program.string()).error().message(), Contains("chmod 755"));
    std::filesystem::permissions(program, std::filesystem::perms(0755));
    CHECK_THAT(find_gvisor(program.string()).error().message(), Contains("no executable"));
    CHECK_THAT(find_gvisor("/usr/bin/env").error().message(), Contains("linked dynamically"));
    CHECK_THAT(find_gvisor("no-such-runsc").error().message(), Contains("in PATH"));
    CHECK(find_gvisor("/bin/busybox").value() == "/bin/busybox");
}

TEST_CASE("gvisor: its own end is the reason, unless a limit is", "[gvisor]") {
    const ResourceLimits limits;
    Exit killed = explain_exit({137, 0}, Usage(), limits);
    explain_gvisor(killed, "runsc was ended by signal 9");
    CHECK(killed.reason == "GVISOR_ENDED");
    CHECK_THAT(killed.message, Contains("signal 9"));
    Usage usage;
    usage.oom_kills = 1;
    Exit starved = explain_exit({137, 0}, usage, limits);
    explain_gvisor(starved, "gVisor ended: EOF");
    CHECK(starved.reason == "OOM_KILLED");
    Exit plain = explain_exit({7, 0}, Usage(), limits);
    explain_gvisor(plain, "");
    CHECK(plain.reason.empty());
}
