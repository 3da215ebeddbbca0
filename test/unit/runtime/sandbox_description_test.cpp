#include "runtime/native/records/sandbox_description.hpp"

#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace {

/// Each limit another number.
runtime::ResourceLimits all_limits() {
    runtime::ResourceLimits limits;
    limits.cpu_cores = 1.5;
    std::uint64_t next = 1000;
    for (const model::LimitRow& row : model::kLimits)
        limits.*row.member = next++;
    return limits;
}

void check_limits(const runtime::ResourceLimits& limits) {
    const runtime::ResourceLimits expected = all_limits();
    CHECK(limits.cpu_cores == expected.cpu_cores);
    for (const model::LimitRow& row : model::kLimits)
        CHECK(limits.*row.member == expected.*row.member);
}

CreateRequest sample() {
    CreateRequest request;
    request.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    SandboxPlan& plan = request.plan;
    plan.image.reference = "python:3";
    plan.image.digest = "sha256:abc";
    plan.image.layers = {"/images/b", "/images/a"};
    plan.image.config.env = {{"PATH", "/bin"}};
    plan.image.config.user = "app";
    plan.image.config.working_directory = "/srv";
    plan.snapshot_layers = {"s"};
    plan.environment = {{"A", "1"}, {"PATH", "/bin"}};
    plan.entrypoint = {"sh", "-c", "true"};
    plan.limits = all_limits();
    plan.network.hostname = "box";
    plan.network.shared = "t/lab";
    plan.network.none = true;
    plan.network.published = {8080, 5432};
    plan.claims = {"cache", "data"};
    plan.own_claims = {"cache"};
    request.agent_token = "agent-hush";
    request.egress = {true, R"({"defaultAction":"deny"})", "egress-hush", {{"X", "1"}}};
    request.authority = "authority-hush";
    return request;
}

/// As the version before wrote it.
constexpr const char* kWrittenBefore = R"({"image":{"reference":"host","digest":"","layers":["/l"],
"usr":"/usr","env":{"PATH":"/bin"},"user":"","workingDirectory":"","entrypoint":[],"cmd":[]},
"snapshotLayers":["s"],"environment":{"A":"1"},"entrypoint":["true"],"cpuCores":0.5,
"memoryBytes":1048576,"pids":7,"diskBytes":16777216,"openFiles":256,"networkRate":8192,
"ioReadRate":8193,"ioWriteRate":8194,"hostname":"box","network":"t/lab","noNetwork":false,
"networkPolicy":"{}","egressEnvironment":{"X":"1"},"published":[[8080,40001]],"claims":["c"],
"ownClaims":["c"],"createdAt":1700000000000000})";

}  // namespace

TEST_CASE("a request says every limit to the spawner", "[runtime][records]") {
    const auto back = decode(encode(sample()));
    REQUIRE(succeeded(back));
    check_limits(std::get<CreateRequest>(*back).plan.limits);
}

TEST_CASE("what a sandbox is made of is read as it was written", "[runtime][records]") {
    SandboxDescription description = describe(sample());
    description.egress = sample().egress;
    description.published = {{8080, 40001}, {5432, 40002}};
    const std::string text = format_description(description);
    const auto back = parse_description(text);
    REQUIRE(succeeded(back));
    CHECK(format_description(*back) == text);
    const SandboxPlan expected = sample().plan;
    CHECK(back->plan.image.layers == expected.image.layers);
    CHECK(back->plan.image.config.user == "app");
    CHECK(back->plan.snapshot_layers == expected.snapshot_layers);
    CHECK(back->plan.environment == expected.environment);
    CHECK(back->plan.entrypoint == expected.entrypoint);
    check_limits(back->plan.limits);
    CHECK(back->plan.network.hostname == "box");
    CHECK(back->plan.network.shared == "t/lab");
    CHECK(back->plan.network.none);
    CHECK(back->plan.network.published == expected.network.published);
    CHECK(back->plan.claims == expected.claims);
    CHECK(back->plan.own_claims == expected.own_claims);
    CHECK(back->egress.wanted);
    CHECK(back->egress.environment == sample().egress.environment);
    CHECK(back->published == description.published);
    CHECK(back->created_at == description.created_at);
}

TEST_CASE("no token is written down", "[runtime][records]") {
    SandboxDescription description = describe(sample());
    description.egress = sample().egress;
    CHECK(format_description(description).find("hush") == std::string::npos);
}

TEST_CASE("where nothing is guarded nothing of it is written", "[runtime][records]") {
    const std::string text = format_description(describe(sample()));
    CHECK(text.find("networkPolicy") == std::string::npos);
    CHECK(text.find("egressEnvironment") == std::string::npos);
    const auto back = parse_description(text);
    REQUIRE(succeeded(back));
    CHECK_FALSE(back->egress.wanted);
}

TEST_CASE("a description of the version before is read", "[runtime][records]") {
    const auto read = parse_description(kWrittenBefore);
    REQUIRE(succeeded(read));
    CHECK(read->plan.image.usr == "/usr");
    CHECK(read->plan.limits.cpu_cores == 0.5);
    CHECK(read->plan.limits.memory_bytes == 1U << 20);
    CHECK(read->plan.limits.pids == 7);
    CHECK(read->plan.limits.disk_bytes == 16U << 20);
    CHECK(read->plan.limits.open_files == 256);
    CHECK(read->plan.limits.network_rate == 8192);
    CHECK(read->plan.limits.io_read_rate == 8193);
    CHECK(read->plan.limits.io_write_rate == 8194);
    CHECK(read->plan.network.shared == "t/lab");
    CHECK(read->plan.network.published == std::vector<std::uint16_t>{8080});
    CHECK(read->plan.own_claims == std::vector<std::string>{"c"});
    CHECK(read->egress.policy == "{}");
    CHECK(read->created_at == Timestamp(std::chrono::seconds(1'700'000'000)));
}

TEST_CASE("a description that is wrong names the member", "[runtime][records]") {
    const auto error = [](const char* text) {
        const auto read = parse_description(text);
        return read ? std::string() : read.error().message();
    };
    CHECK(error("[]") == "image: must be an object");
    CHECK(error("{}") == "image: must be an object");
    CHECK(error(R"({"image":{},"published":[[0,1]]})") == "published: must be pairs of ports");
    CHECK(error(R"({"image":{"layers":1}})").find("image") == 0);
    CHECK(error(R"({"image":{},"pids":"x"})").find("pids") == 0);
    CHECK(error(R"({"image":{}})").empty());
}
