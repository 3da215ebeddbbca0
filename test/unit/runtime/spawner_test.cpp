#include "base/identifier.hpp"
#include "unit/runtime/outcome.hpp"
#include "unit/runtime/spawner_fixture.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::test;

TEST_CASE("a sandbox answers as soon as it was created and leaves nothing when destroyed",
          "[runtime][spawner]") {
    SpawnerFixture fixture(0);
    const Census before = fixture.census();
    const SandboxSpec spec = SpawnerFixture::shell("sleep 1000");
    const auto agent = fixture.create(spec);
    REQUIRE(succeeded(agent));
    CHECK(http_get(*agent, "/ping", "token").starts_with("HTTP/1.1 200"));
    CHECK(http_get(*agent, "/ping", "wrong").starts_with("HTTP/1.1 401"));
    const auto listed = fixture.list();
    REQUIRE(listed.size() == 1);
    CHECK(listed[0].id == spec.id);
    CHECK(listed[0].endpoints.agent.port == agent->port);
    CHECK_FALSE(listed[0].exit);
    CHECK_FALSE(fixture.census() == before);
    CHECK(succeeded(fixture.destroy(spec.id)));
    CHECK(fixture.census() == before);
    CHECK(fixture.list().empty());
    CHECK(http_get(*agent, "/ping", "token").empty());
    CHECK(succeeded(fixture.destroy(spec.id)));
}

TEST_CASE("blanks are kept ready and taken", "[runtime][spawner]") {
    SpawnerFixture fixture(2);
    fixture.wait_ready(2);
    const SandboxSpec spec = SpawnerFixture::shell("sleep 1000");
    REQUIRE(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_figures([](const Figures& now) {
        return now.slots_ready == 2 && now.slots_target == 2 && now.slot_hits == 1 &&
               now.slot_misses == 0 && now.slot_refills == 2 && now.sandboxes == 1;
    }));
}

TEST_CASE("the end of an entrypoint is told with its code", "[runtime][spawner]") {
    SpawnerFixture fixture;
    const SandboxSpec spec = SpawnerFixture::shell("exit 7");
    REQUIRE(succeeded(fixture.create(spec)));
    const Exit exit = fixture.wait_exit(spec.id);
    CHECK(exit.code == 7);
    CHECK(exit.signal == 0);
    CHECK(exit.reason.empty());
    const auto listed = fixture.list();
    REQUIRE(listed.size() == 1);
    REQUIRE(listed[0].exit);
    CHECK(listed[0].exit->code == 7);
}

TEST_CASE("an entrypoint that cannot start is named and leaves nothing", "[runtime][spawner]") {
    SpawnerFixture fixture(0);
    const Census before = fixture.census();
    SandboxSpec spec = SpawnerFixture::shell("");
    spec.entrypoint = {"/no/such/program"};
    const auto agent = fixture.create(spec);
    REQUIRE_FALSE(agent.has_value());
    CHECK(agent.error().message().find("/no/such/program") != std::string::npos);
    CHECK(fixture.census() == before);
    CHECK(fixture.list().empty());
}

TEST_CASE("an unknown image is named", "[runtime][spawner]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("true");
    spec.image = "no-such-image:1";
    const auto agent = fixture.create(spec);
    REQUIRE_FALSE(agent.has_value());
    CHECK(agent.error().code() == ErrorCode::not_found);
    CHECK(agent.error().wire() == "NATIVE::SANDBOX_IMAGE_PULL_FAILED");
}

TEST_CASE("root inside can neither see nor change the host", "[runtime][spawner]") {
    SpawnerFixture fixture;
    // The code says which of them failed.
    const SandboxSpec spec = SpawnerFixture::shell(R"sh(
        test "$(id -u)" = 0 || exit 1
        mount -t tmpfs x /mnt 2>/dev/null && exit 2
        unshare -U true 2>/dev/null && exit 3
        echo 1 2>/dev/null > /proc/sys/kernel/panic && exit 4
        echo 1 2>/dev/null > /sys/kernel/mm/transparent_hugepage/enabled && exit 5
        mknod /tmp/disk b 8 0 2>/dev/null && exit 6
        test -e /root/.ssh && exit 7
        test "$(ls -d /proc/[0-9]* | wc -l)" -lt 12 || exit 8
        test -s /proc/kcore && exit 9
        python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)' 2>/dev/null && exit 10
        grep -q state-directory /proc/1/cmdline && exit 11
        cat /proc/1/environ >/dev/null 2>&1 && exit 12
        grep -q '^Seccomp:.2' /proc/self/status || exit 13
        test "$(hostname)" = "$HOSTNAME" || exit 14
        echo x > /usr/local/share/own && test "$(stat -c %u /usr/local/share/own)" = 0 || exit 15
        test "$(cat /proc/sys/user/max_user_namespaces)" = 0 || exit 16
        test "$(ls /sys/class/net | tr '\n' ' ')" = 'eth0 lo ' || exit 17
        exit 100)sh");
    REQUIRE(succeeded(fixture.create(spec)));
    CHECK(fixture.wait_exit(spec.id).code == 100);
    CHECK_FALSE(std::filesystem::exists("/usr/local/share/own"));
}

TEST_CASE("an agent killed from outside is told as such", "[runtime][spawner]") {
    SpawnerFixture fixture(0);
    const Census before = fixture.census();
    const SandboxSpec spec = SpawnerFixture::shell("sleep 1000");
    REQUIRE(succeeded(fixture.create(spec)));
    REQUIRE(::kill(fixture.agent_of(spec.id), SIGKILL) == 0);
    const Exit exit = fixture.wait_exit(spec.id);
    CHECK(exit.code == -1);
    CHECK(exit.signal == SIGKILL);
    CHECK(exit.reason == "AGENT_KILLED");
    CHECK(succeeded(fixture.destroy(spec.id)));
    CHECK(fixture.census() == before);
}

TEST_CASE("a sandbox that passes its memory limit is ended for it", "[runtime][spawner]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("exec python3 -c 'x = b\"1\" * (400 << 20)'");
    spec.limits.memory_bytes = 128 << 20;
    REQUIRE(succeeded(fixture.create(spec)));
    const Exit exit = fixture.wait_exit(spec.id);
    CHECK(exit.reason == "OOM_KILLED");
}

TEST_CASE("a sandbox that uses up its processes hurts itself only", "[runtime][spawner]") {
    SpawnerFixture fixture(1);
    SandboxSpec spec =
        SpawnerFixture::shell("for i in $(seq 100); do sleep 1000 & done 2>/dev/null; sleep 1000");
    spec.limits.pids = 20;
    REQUIRE(succeeded(fixture.create(spec)));
    const SandboxSpec other = SpawnerFixture::shell("exit 3");
    REQUIRE(succeeded(fixture.create(other)));
    CHECK(fixture.wait_exit(other.id).code == 3);
    CHECK(succeeded(fixture.destroy(spec.id)));
}

TEST_CASE("sandboxes outlive their spawner and are adopted by the next", "[runtime][spawner]") {
    SpawnerFixture fixture(1);
    const SandboxSpec lives = SpawnerFixture::shell("sleep 1000");
    const SandboxSpec ends =
        SpawnerFixture::shell("while ! test -e /tmp/end; do sleep 0.1; done; exit 5");
    const auto agent = fixture.create(lives);
    REQUIRE(succeeded(agent));
    REQUIRE(succeeded(fixture.create(ends)));
    const pid_t ending = fixture.agent_of(ends.id);
    fixture.kill_spawner();
    CHECK(http_get(*agent, "/ping", "token").starts_with("HTTP/1.1 200"));
    // Unlinked by nobody: a new spawner takes the path over.
    fixture.start_spawner();
    fixture.connect();
    CHECK(fixture.list().size() == 2);
    CHECK(http_get(*agent, "/ping", "token").starts_with("HTTP/1.1 200"));
    REQUIRE(::kill(ending, SIGKILL) == 0);
    CHECK(fixture.wait_exit(ends.id).reason == "AGENT_KILLED");
    CHECK(succeeded(fixture.destroy(lives.id)));
    CHECK(succeeded(fixture.destroy(ends.id)));
    const Census after = fixture.census();
    for (const std::string& path : after.files) {
        CHECK(path.find(lives.id) == std::string::npos);
    }
    CHECK(http_get(*agent, "/ping", "token").empty());
}

TEST_CASE("a server that comes back finds what ended meanwhile", "[runtime][spawner]") {
    SpawnerFixture fixture(1);
    const SandboxSpec spec = SpawnerFixture::shell("sleep 0.3; exit 9");
    REQUIRE(succeeded(fixture.create(spec)));
    fixture.wait_exit(spec.id);
    fixture.connect();
    const auto listed = fixture.list();
    REQUIRE(listed.size() == 1);
    REQUIRE(listed[0].exit);
    CHECK(listed[0].exit->code == 9);
}

TEST_CASE("an environment beyond the limit is refused and nothing is left", "[runtime][spawner]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("true");
    spec.env.emplace_back("BIG", std::string(300 * 1024, 'x'));
    const auto agent = fixture.create(spec);
    REQUIRE_FALSE(agent.has_value());
    CHECK(agent.error().code() == ErrorCode::too_large);
    CHECK(fixture.list().empty());
}
