#include "unit/runtime/outcome.hpp"
#include "unit/runtime/spawner_fixture.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::test;

namespace {

model::LifecycleHooks before(const std::string& script, std::optional<std::int64_t> timeout = {}) {
    model::LifecycleHooks hooks;
    hooks.pre_start.emplace();
    hooks.pre_start->command = {"/bin/sh", "-c", script};
    hooks.pre_start->timeout_seconds = timeout;
    return hooks;
}

}  // namespace

TEST_CASE("a preStart hook runs before the entrypoint", "[runtime][hook]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell(
        "env | grep -q LIFECYCLE && exit 1; test $(cat /made) = hook && exit 100");
    spec.hooks = before("echo prepared; sleep 0.2; echo hook > /made");
    REQUIRE(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_exit(spec.id).code == 100);
    LogQuery query;
    query.timestamps = false;
    CHECK(fixture.logs(spec.id, query).value() == "prepared\n");
}

TEST_CASE("a preStart hook that fails is named with its output and leaves nothing",
          "[runtime][hook]") {
    SpawnerFixture fixture(0);
    const Census census = fixture.census();
    SandboxSpec spec = SpawnerFixture::shell("sleep 1000");
    std::string expected;
    SECTION("by its code") {
        spec.hooks = before("echo no such thing; exit 3");
        expected = "lifecycle.preStart: exit status 3: no such thing";
    }
    SECTION("by its time") {
        spec.hooks = before("echo still here; sleep 1000", 1);
        expected = "lifecycle.preStart: did not end within 1 seconds: still here";
    }
    SECTION("because it cannot start") {
        spec.hooks = before("");
        spec.hooks->pre_start->command = {"/no/such/program"};
        expected = "/no/such/program";
    }
    const auto made = fixture.create(spec);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().wire() == "NATIVE::SANDBOX_START_FAILED");
    CHECK(made.error().message().find(expected) != std::string::npos);
    CHECK(fixture.census() == census);
}

TEST_CASE("a periodic hook runs again and again, never twice at once", "[runtime][hook]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell(
        "while test \"$(cat /runs 2>/dev/null | wc -l)\" -lt 2; do sleep 0.1; done; "
        "test -e /twice && exit 1; exit 100");
    model::PeriodicHook hook;
    hook.name = "tick";
    hook.schedule = "@every 1s";
    hook.command = {"/bin/sh", "-c",
                    "mkdir /lock || touch /twice; sleep 1.5; echo >> /runs; rmdir /lock"};
    spec.hooks.emplace();
    spec.hooks->periodic = {hook};
    REQUIRE(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_exit(spec.id).code == 100);
}

TEST_CASE("a schedule that is none is refused before anything is made", "[runtime][hook]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("true");
    model::PeriodicHook hook;
    hook.name = "tick";
    hook.schedule = "61 * * * *";
    hook.command = {"true"};
    spec.hooks.emplace();
    spec.hooks->periodic = {hook};
    const auto made = fixture.create(spec);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().wire() == "SANDBOX::INVALID_PARAMETER");
    CHECK(made.error().message().find("minute") != std::string::npos);
}
