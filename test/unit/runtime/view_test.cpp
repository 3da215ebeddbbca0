#include "runtime/native/records/inspection_text.hpp"
#include "runtime/native/server/readings.hpp"
#include "unit/runtime/outcome.hpp"
#include "unit/runtime/spawner_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::test;

namespace {

const std::string sample_log =
    "2026-01-01T00:00:01.000000Z one\n"
    "2026-01-01T00:00:02.000000Z two\n"
    "2026-01-01T00:00:03.000000Z three";

}  // namespace

TEST_CASE("log lines are chosen by number and time", "[runtime][logs]") {
    LogQuery query;
    CHECK(native::select_lines(sample_log, query) == sample_log);
    query.tail = 1;
    CHECK(native::select_lines(sample_log, query) == "2026-01-01T00:00:03.000000Z three");
    query.tail = 100;
    query.since = parse_rfc3339("2026-01-01T00:00:02Z");
    query.timestamps = false;
    CHECK(native::select_lines(sample_log, query) == "two\nthree");
    query.tail = 0;
    CHECK(native::select_lines(sample_log, query).empty());
    CHECK(native::select_lines("", LogQuery()).empty());
}

TEST_CASE("the output of an entrypoint is kept, also when it ended", "[runtime][logs]") {
    SpawnerFixture fixture(0);
    const SandboxSpec spec = SpawnerFixture::shell("echo out; echo err >&2; printf last; exit 3");
    REQUIRE(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_exit(spec.id).code == 3);
    LogQuery query;
    query.timestamps = false;
    auto shown = fixture.logs(spec.id, query);
    REQUIRE(succeeded(shown));
    CHECK(*shown == "out\nerr\nlast");
    query.timestamps = true;
    query.tail = 1;
    shown = fixture.logs(spec.id, query);
    REQUIRE(succeeded(shown));
    CHECK(parse_rfc3339(shown->substr(0, shown->find(' '))));
    fixture.kill_spawner();
    fixture.start_spawner();
    fixture.connect();
    CHECK(succeeded(fixture.logs(spec.id, query)));
    REQUIRE(succeeded(fixture.destroy(spec.id)));
    CHECK(fixture.logs(spec.id, query).error().code() == ErrorCode::not_found);
}

TEST_CASE("of much output the last part is kept", "[runtime][logs]") {
    SpawnerFixture fixture(0);
    const SandboxSpec spec = SpawnerFixture::shell("seq 100000");
    REQUIRE(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_exit(spec.id).code == 0);
    LogQuery query;
    query.tail = 100'000;
    query.timestamps = false;
    const auto shown = fixture.logs(spec.id, query);
    REQUIRE(succeeded(shown));
    CHECK(shown->ends_with("\n99999\n100000\n"));
    CHECK(shown->size() < 256 * 1024);
    CHECK(shown->size() > 10'000);
}

TEST_CASE("an inspection shows what a sandbox is made of", "[runtime][inspect]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("test -e /go || sleep 1000");
    spec.env.emplace_back("NAME", "value");
    spec.limits.cpu_cores = 0.5;
    spec.limits.memory_bytes = 256 << 20;
    spec.resource_requests = {{"cpu", "250m"}, {"memory", "64Mi"}};
    const auto agent = fixture.create(spec);
    REQUIRE(succeeded(agent));
    auto seen = fixture.inspect(spec.id);
    REQUIRE(succeeded(seen));
    CHECK(seen->object_id == spec.id);
    CHECK(seen->image == "host");
    CHECK(seen->status == "running");
    CHECK(seen->running);
    CHECK(seen->limits.cpu_cores == 0.5);
    CHECK(seen->limits.memory_bytes == 256U << 20);
    CHECK(seen->limits.pids == 4096U);
    REQUIRE(seen->ports.size() == 1);
    CHECK(seen->ports[0].outside == "127.0.0.1:" + std::to_string(agent->port));
    REQUIRE(seen->addresses.size() == 1);
    CHECK(seen->addresses[0].second.starts_with("10.215."));
    const std::pair<std::string, std::string> variable{"NAME", "value"};
    CHECK(std::ranges::count(seen->environment, variable) == 1);
    REQUIRE(succeeded(fixture.pause(spec.id)));
    CHECK(fixture.inspect(spec.id)->status == "paused");
    REQUIRE(succeeded(fixture.resume(spec.id)));
    REQUIRE(::kill(fixture.agent_of(spec.id), SIGKILL) == 0);
    (void)fixture.wait_exit(spec.id);
    seen = fixture.inspect(spec.id);
    REQUIRE(succeeded(seen));
    CHECK(seen->status == "exited");
    CHECK(seen->exit_code == 137);
    CHECK(seen->finished_at);
}

TEST_CASE("a resource request that is no quantity is refused", "[runtime][spawner]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("true");
    spec.resource_requests = {{"memory", "much"}};
    const auto made = fixture.create(spec);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code() == ErrorCode::invalid_argument);
    CHECK(made.error().message().find("resourceRequests.memory") != std::string::npos);
    spec.resource_requests = {{"cpu", "1e300"}};
    const auto huge = fixture.create(spec);
    REQUIRE_FALSE(huge.has_value());
    CHECK(huge.error().message().find("must be 1000000 cores or fewer") != std::string::npos);
}
