#include "unit/runtime/outcome.hpp"
#include "unit/runtime/spawner_fixture.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <fstream>
#include <signal.h>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::test;

namespace {

/// Counts as long as it runs.
SandboxSpec counter() {
    return SpawnerFixture::shell(
        "i=0; while true; do i=$((i+1)); echo $i > /count; sleep 0.005; done");
}

std::uintmax_t count_of(const SpawnerFixture& fixture, const std::string& id) {
    std::ifstream in(fixture.slot_of(id) / "u" / "count");
    std::uintmax_t count = 0;
    in >> count;
    return count;
}

/// Waits until it counts further than `from`.
bool counts_on(const SpawnerFixture& fixture, const std::string& id, std::uintmax_t from) {
    for (int round = 0; round < 1000; ++round) {
        if (count_of(fixture, id) > from) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

}  // namespace

TEST_CASE("a paused sandbox stands still until it is resumed", "[runtime][pause]") {
    SpawnerFixture fixture(0);
    const SandboxSpec spec = counter();
    const auto agent = fixture.create(spec);
    REQUIRE(succeeded(agent));
    REQUIRE(counts_on(fixture, spec.id, 0));
    REQUIRE(succeeded(fixture.pause(spec.id)));
    CHECK(succeeded(fixture.pause(spec.id)));
    REQUIRE(fixture.list().size() == 1);
    CHECK(fixture.list()[0].paused);
    const auto stopped_at = count_of(fixture, spec.id);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(count_of(fixture, spec.id) == stopped_at);
    REQUIRE(succeeded(fixture.resume(spec.id)));
    CHECK(succeeded(fixture.resume(spec.id)));
    CHECK_FALSE(fixture.list()[0].paused);
    CHECK(counts_on(fixture, spec.id, stopped_at));
    CHECK(http_get(*agent, "/ping", "token").starts_with("HTTP/1.1 200"));
}

TEST_CASE("a paused sandbox can be destroyed", "[runtime][pause]") {
    SpawnerFixture fixture(0);
    const Census before = fixture.census();
    const SandboxSpec spec = counter();
    REQUIRE(succeeded(fixture.create(spec)));
    REQUIRE(succeeded(fixture.pause(spec.id)));
    CHECK(succeeded(fixture.destroy(spec.id)));
    CHECK(fixture.census() == before);
}

TEST_CASE("a paused sandbox that is killed from outside is told as ended", "[runtime][pause]") {
    SpawnerFixture fixture(0);
    const SandboxSpec spec = counter();
    REQUIRE(succeeded(fixture.create(spec)));
    const pid_t agent = fixture.agent_of(spec.id);
    REQUIRE(succeeded(fixture.pause(spec.id)));
    REQUIRE(::kill(agent, SIGKILL) == 0);
    CHECK(fixture.wait_exit(spec.id).reason == "AGENT_KILLED");
    REQUIRE(fixture.list().size() == 1);
    CHECK_FALSE(fixture.list()[0].paused);
    const auto status = fixture.pause(spec.id);
    REQUIRE_FALSE(status.has_value());
    CHECK(status.error().code() == ErrorCode::conflict);
}

TEST_CASE("an unknown sandbox can be neither paused nor resumed", "[runtime][pause]") {
    SpawnerFixture fixture(0);
    for (const auto& status : {fixture.pause("x"), fixture.resume("x")}) {
        REQUIRE_FALSE(status.has_value());
        CHECK(status.error().code() == ErrorCode::not_found);
    }
}

TEST_CASE("a new spawner knows who is paused", "[runtime][pause]") {
    SpawnerFixture fixture(0);
    const SandboxSpec paused = counter();
    const SandboxSpec running = counter();
    REQUIRE(succeeded(fixture.create(paused)));
    REQUIRE(succeeded(fixture.create(running)));
    REQUIRE(succeeded(fixture.pause(paused.id)));
    fixture.kill_spawner();
    fixture.start_spawner();
    fixture.connect();
    for (const Observed& item : fixture.list())
        CHECK(item.paused == (item.id == paused.id));
    const auto stopped_at = count_of(fixture, paused.id);
    CHECK(counts_on(fixture, running.id, count_of(fixture, running.id)));
    REQUIRE(succeeded(fixture.resume(paused.id)));
    CHECK(counts_on(fixture, paused.id, stopped_at));
}
