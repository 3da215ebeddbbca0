#include "unit/runtime/outcome.hpp"
#include "unit/runtime/spawner_fixture.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::test;

namespace {

/// So many warm slots of the host's image, with a Python that has modules loaded.
native::WarmOptions host_with_python(std::uint32_t size, const std::string& module = "json") {
    native::WarmOptions warm;
    native::WarmOptions::Image host;
    host.programs = R"([{"language":"python","import":[")" + module + R"("]}])";
    host.pool = {size, size, 60};
    warm.images.emplace("host", host);
    return warm;
}

/// What the entrypoint wrote so far, once it wrote `end`.
std::string wait_output(SpawnerFixture& fixture, const std::string& id, const std::string& end) {
    LogQuery query;
    query.timestamps = false;
    for (int round = 0; round < 2000; ++round) {
        auto text = fixture.logs(id, query);
        REQUIRE(succeeded(text));
        if (text->find(end) != std::string::npos) return *text;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL("the entrypoint does not write " << end);
    return {};
}

constexpr const char* kReport =
    "echo name $(hostname) $(cat /etc/hostname) $HOSTNAME; echo hosts $(grep -c $(hostname) "
    "/etc/hosts); echo greeting $GREETING; for p in /proc/[0-9]*; do echo program $(tr '\\0' ' ' < "
    "$p/cmdline | cut -c 1-11); done; ls /tmp; echo x > /tmp/mark; echo end; exec sleep 1000";

}  // namespace

TEST_CASE("a warm slot becomes the sandbox that was asked for", "[runtime][warm]") {
    SpawnerFixture fixture(1, host_with_python(1));
    REQUIRE(fixture.wait_figures([](const Figures& now) { return now.warm_ready == 1; }));
    CHECK(fixture.list().empty());
    SandboxSpec spec = SpawnerFixture::shell(kReport);
    spec.env = {{"GREETING", "hello"}};
    const auto agent = fixture.create(spec);
    REQUIRE(succeeded(agent));
    CHECK(fixture.wait_figures([](const Figures& now) { return now.warm_hits == 1; }));
    CHECK(http_get(*agent, "/ping", "token").starts_with("HTTP/1.1 200"));
    CHECK(http_get(*agent, "/ping", "wrong").starts_with("HTTP/1.1 401"));
    const std::string name = spec.id.substr(0, 8);
    const std::string text = wait_output(fixture, spec.id, "end\n");
    CHECK(text.find("name " + name + " " + name + " " + name + "\n") != std::string::npos);
    CHECK(text.find("hosts 1\n") != std::string::npos);
    CHECK(text.find("greeting hello\n") != std::string::npos);
    CHECK(text.find("program python3") != std::string::npos);
    REQUIRE(fixture.list().size() == 1);
    CHECK(fixture.list()[0].id == spec.id);
}

TEST_CASE("a warm slot serves one sandbox, and nothing is left of either", "[runtime][warm]") {
    SpawnerFixture fixture(1, host_with_python(1));
    REQUIRE(fixture.wait_figures(
        [](const Figures& now) { return now.warm_ready == 1 && now.slots_ready == 1; }));
    const Census before = fixture.census();
    for (std::uint64_t number = 1; number <= 3; ++number) {
        const SandboxSpec spec = SpawnerFixture::shell(kReport);
        REQUIRE(succeeded(fixture.create(spec)));
        const std::string text = wait_output(fixture, spec.id, "end\n");
        CHECK(text.find("mark") == std::string::npos);
        CHECK(succeeded(fixture.destroy(spec.id)));
        REQUIRE(fixture.wait_figures([&](const Figures& now) {
            return now.warm_hits == number && now.warm_ready == 1 && now.slots_ready == 1;
        }));
    }
    const Census after = fixture.census();
    CHECK(after.links.size() == before.links.size());
    CHECK(after.cgroups.size() == before.cgroups.size());
    CHECK(after.files.size() == before.files.size());
    CHECK(after.processes.size() == before.processes.size());
}

TEST_CASE("programs that do not start keep nobody from a sandbox", "[runtime][warm]") {
    SpawnerFixture fixture(1, host_with_python(1, "no_such_module"));
    REQUIRE(fixture.wait_figures([](const Figures& now) { return now.warm_failures > 0; }));
    const SandboxSpec spec = SpawnerFixture::shell("sleep 1000");
    CHECK(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_figures([](const Figures& now) {
        return now.warm_misses == 1 && now.warm_hits == 0 && now.warm_ready == 0;
    }));
}

TEST_CASE("warm slots are nobody's and end with their spawner", "[runtime][warm]") {
    SpawnerFixture fixture(0, host_with_python(2));
    REQUIRE(fixture.wait_figures([](const Figures& now) { return now.warm_ready == 2; }));
    fixture.kill_spawner();
    fixture.start_spawner();
    REQUIRE(fixture.wait_figures([](const Figures& now) { return now.warm_ready == 0; }));
    // The runtime finds the new one and says again what it wants.
    REQUIRE(fixture.wait_figures([](const Figures& now) { return now.warm_ready == 2; }));
    CHECK(fixture.list().empty());
}

namespace {

constexpr std::uint32_t kPoolSize = 4;

/// Asks for the same image until slots of the pool wait with it mounted.
void ask_until_mounted(SpawnerFixture& fixture) {
    for (int i = 0; i < 2; ++i) {
        const SandboxSpec spec = SpawnerFixture::shell("sleep 1000");
        REQUIRE(succeeded(fixture.create(spec)));
        REQUIRE(succeeded(fixture.destroy(spec.id)));
    }
    REQUIRE(fixture.wait_figures(
        [](const Figures& now) { return now.slots_mounted == 1 && now.slots_ready == kPoolSize; }));
}

}  // namespace

TEST_CASE("a slot that waits with the image mounted becomes the sandbox that was asked for",
          "[runtime][warm]") {
    SpawnerFixture fixture(kPoolSize);
    ask_until_mounted(fixture);
    CHECK(fixture.list().empty());
    const Census before = fixture.census();
    for (std::uint64_t number = 1; number <= 2; ++number) {
        SandboxSpec spec = SpawnerFixture::shell(kReport);
        spec.env = {{"GREETING", "hello" + std::to_string(number)}};
        const auto agent = fixture.create(spec);
        REQUIRE(succeeded(agent));
        CHECK(http_get(*agent, "/ping", "token").starts_with("HTTP/1.1 200"));
        CHECK(http_get(*agent, "/ping", "wrong").starts_with("HTTP/1.1 401"));
        const std::string name = spec.id.substr(0, 8);
        const std::string text = wait_output(fixture, spec.id, "end\n");
        CHECK(text.find("name " + name + " " + name + " " + name + "\n") != std::string::npos);
        CHECK(text.find("hosts 1\n") != std::string::npos);
        CHECK(text.find("greeting hello" + std::to_string(number) + "\n") != std::string::npos);
        CHECK(text.find("mark") == std::string::npos);
        REQUIRE(succeeded(fixture.destroy(spec.id)));
        REQUIRE(fixture.wait_figures([&](const Figures& now) {
            return now.slots_mounted == 1 && now.slots_ready == kPoolSize &&
                   now.slot_hits == 2 + number && now.slot_misses == 0 && now.warm_hits == 0;
        }));
    }
    const Census after = fixture.census();
    CHECK(after.links.size() == before.links.size());
    CHECK(after.cgroups.size() == before.cgroups.size());
    CHECK(after.files.size() == before.files.size());
    CHECK(after.processes.size() == before.processes.size());
}

TEST_CASE("a slot that waits with the image mounted gets the limits of its sandbox",
          "[runtime][warm]") {
    SpawnerFixture fixture(kPoolSize);
    ask_until_mounted(fixture);
    SandboxSpec spec = SpawnerFixture::shell("exec python3 -c 'x = b\"1\" * (400 << 20)'");
    spec.limits.memory_bytes = 128 << 20;
    REQUIRE(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_exit(spec.id).reason == "OOM_KILLED");
    CHECK(fixture.wait_figures([](const Figures& now) { return now.slot_hits == 3; }));
}

TEST_CASE("slots that wait with an image mounted end with their spawner", "[runtime][warm]") {
    SpawnerFixture fixture(kPoolSize);
    ask_until_mounted(fixture);
    fixture.kill_spawner();
    fixture.start_spawner();
    REQUIRE(fixture.wait_figures(
        [](const Figures& now) { return now.slots_mounted == 0 && now.slots_ready == kPoolSize; }));
    const SandboxSpec spec = SpawnerFixture::shell("exit 3");
    REQUIRE(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_exit(spec.id).code == 3);
}
