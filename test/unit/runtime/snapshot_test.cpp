#include "base/identifier.hpp"
#include "unit/runtime/outcome.hpp"
#include "unit/runtime/spawner_fixture.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::test;

namespace {

/// Does `script`, then says so in /ready and sleeps.
SandboxSpec does(const std::string& script) {
    return SpawnerFixture::shell(script + "; echo > /ready; exec sleep 1000");
}

SandboxSpec from(const std::string& snapshot, const std::string& script) {
    SandboxSpec spec = SpawnerFixture::shell(script);
    spec.image.clear();
    spec.snapshot.emplace(snapshot, snapshot);
    return spec;
}

void await_ready(const SpawnerFixture& fixture, const std::string& id) {
    const auto path = fixture.slot_of(id) / "u" / "ready";
    for (int round = 0; round < 1000 && !std::filesystem::exists(path); ++round)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    REQUIRE(std::filesystem::exists(path));
}

/// Makes a sandbox that does `script`, and a snapshot of it.
std::string snapshot_of(SpawnerFixture& fixture, SandboxSpec spec) {
    REQUIRE(succeeded(fixture.create(spec)));
    await_ready(fixture, spec.id);
    const std::string id = new_uuid();
    auto taken = fixture.snapshot(spec.id, id);
    REQUIRE(succeeded(taken));
    CHECK(taken->id == id);
    REQUIRE(succeeded(fixture.destroy(spec.id)));
    return id;
}

int code_of(SpawnerFixture& fixture, const SandboxSpec& spec) {
    REQUIRE(succeeded(fixture.create(spec)));
    const Exit exit = fixture.wait_exit(spec.id);
    CHECK(succeeded(fixture.destroy(spec.id)));
    return exit.code;
}

bool eventually(const std::function<bool()>& condition) {
    for (int round = 0; round < 1000; ++round) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

}  // namespace

TEST_CASE("a sandbox made from a snapshot has the files of the source", "[runtime][snapshot]") {
    SpawnerFixture fixture(1);
    const std::string id = snapshot_of(fixture, does(R"sh(
        echo kept > /root/file; chown 33:44 /root/file; chmod 640 /root/file
        ln /root/file /root/other; ln -s file /root/link; mkfifo /root/pipe
        rm -r /etc/ssl; rm /etc/passwd; mkdir /etc/passwd.d
        echo usr > /usr/local/share/own; rm -f /usr/bin/perl
        truncate -s 1G /root/sparse; touch -d @1000 /root/file)sh"));
    CHECK(fixture.snapshots() == std::set<std::string>{id});
    CHECK(code_of(fixture, from(id, R"sh(
        test "$(cat /root/other)" = kept || exit 1
        test "$(stat -c %u:%g:%a:%h:%Y /root/file)" = 33:44:640:2:1000 || exit 2
        test "$(readlink /root/link)" = file && test -p /root/pipe || exit 3
        test -e /etc/ssl && exit 4
        test -e /etc/passwd && exit 5
        test -d /etc/passwd.d || exit 6
        test "$(cat /usr/local/share/own)" = usr || exit 7
        test -e /usr/bin/perl && exit 8
        test "$(stat -c %s /root/sparse)" = 1073741824 || exit 9
        test "$(stat -c %b /root/sparse)" -lt 1000 || exit 10
        test -x /usr/bin/python3 || exit 11
        echo more > /root/file || exit 12
        exit 100)sh")) == 100);
    // What one made of it changes nothing for the next.
    CHECK(code_of(fixture, from(id, "test $(cat /root/file) = kept && exit 100")) == 100);
    CHECK_FALSE(std::filesystem::exists("/usr/local/share/own"));
}

TEST_CASE("snapshots of snapshots add up", "[runtime][snapshot]") {
    SpawnerFixture fixture(1);
    const std::string first = snapshot_of(fixture, does("echo 1 > /a; echo 1 > /b"));
    SandboxSpec spec = from(first,
                            "rm /b; echo 2 > /c; echo > /ready; rm /usr/bin/perl; "
                            "exec sleep 1000");
    const std::string second = snapshot_of(fixture, spec);
    const std::string check = "test \"$(cat /a /c)\" = \"1\n2\" && ! test -e /b && exit 100";
    CHECK(code_of(fixture, from(second, check)) == 100);
    CHECK(code_of(fixture, from(first, "test -e /b && ! test -e /c && exit 100")) == 100);
    SECTION("and the lower one can be removed") {
        REQUIRE(succeeded(fixture.remove_snapshot(first)));
        CHECK(fixture.snapshots() == std::set<std::string>{second});
        CHECK(code_of(fixture, from(second, check)) == 100);
        REQUIRE(succeeded(fixture.remove_snapshot(second)));
        CHECK(eventually([&] { return fixture.snapshot_files().empty(); }));
    }
    SECTION("and the upper one can be removed") {
        REQUIRE(succeeded(fixture.remove_snapshot(second)));
        CHECK(code_of(fixture, from(first, "test -e /b && exit 100")) == 100);
        REQUIRE(succeeded(fixture.remove_snapshot(first)));
        CHECK(eventually([&] { return fixture.snapshot_files().empty(); }));
    }
}

TEST_CASE("a removed snapshot stays below the sandboxes made from it", "[runtime][snapshot]") {
    SpawnerFixture fixture(1);
    const std::string id = snapshot_of(fixture, does("echo 1 > /a"));
    const SandboxSpec spec =
        from(id, "while ! test -e /go; do sleep 0.05; done; test $(cat /a) = 1 && exit 100");
    REQUIRE(succeeded(fixture.create(spec)));
    REQUIRE(succeeded(fixture.remove_snapshot(id)));
    CHECK(fixture.snapshots().empty());
    const auto refused = fixture.create(from(id, "true"));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::not_found);
    // Also for a spawner that did not see it being made.
    fixture.kill_spawner();
    fixture.start_spawner();
    fixture.connect();
    CHECK_FALSE(fixture.snapshot_files().empty());
    CHECK(succeeded(fixture.destroy(spec.id)));
    CHECK(eventually([&] { return fixture.snapshot_files().empty(); }));
    CHECK(succeeded(fixture.remove_snapshot(id)));
}

TEST_CASE("a snapshot is whole although its sandbox writes on", "[runtime][snapshot]") {
    SpawnerFixture fixture(0);
    // Two files that differ by one step at most.
    const SandboxSpec spec = SpawnerFixture::shell(
        "echo > /ready; i=0; while true; do i=$((i+1)); echo $i > /a; echo $i > /b; done");
    REQUIRE(succeeded(fixture.create(spec)));
    await_ready(fixture, spec.id);
    for (int round = 0; round < 3; ++round) {
        const std::string id = new_uuid();
        REQUIRE(succeeded(fixture.snapshot(spec.id, id)));
        const auto value = [&](const char* name) {
            std::ifstream in(fixture.state() / "snapshots" / "layers" / id / "u" / name);
            long number = 0;
            in >> number;
            return number;
        };
        // Either may have been caught between its truncation and its line.
        if (value("a") > 0 && value("b") > 0) CHECK(value("a") - value("b") <= 1);
    }
    CHECK_FALSE(fixture.list()[0].paused);
    const auto b = fixture.slot_of(spec.id) / "u" / "b";
    const auto written = std::filesystem::last_write_time(b);
    CHECK(eventually([&] { return std::filesystem::last_write_time(b) > written; }));
}

TEST_CASE("a paused sandbox stays paused when a snapshot was made of it", "[runtime][snapshot]") {
    SpawnerFixture fixture(0);
    const SandboxSpec spec = does("true");
    REQUIRE(succeeded(fixture.create(spec)));
    await_ready(fixture, spec.id);
    REQUIRE(succeeded(fixture.pause(spec.id)));
    REQUIRE(succeeded(fixture.snapshot(spec.id, new_uuid())));
    CHECK(fixture.list()[0].paused);
    CHECK(succeeded(fixture.resume(spec.id)));
    CHECK(succeeded(fixture.snapshot(spec.id, new_uuid())));
    CHECK(fixture.snapshots().size() == 2);
}

TEST_CASE("a snapshot that fails leaves nothing and its sandbox runs on", "[runtime][snapshot]") {
    SpawnerFixture fixture(0);
    const SandboxSpec spec = does("true");
    const auto agent = fixture.create(spec);
    REQUIRE(succeeded(agent));
    await_ready(fixture, spec.id);
    const std::string id = new_uuid();
    SECTION("of what does not exist") {
        const auto taken = fixture.snapshot(new_uuid(), id);
        REQUIRE_FALSE(taken.has_value());
        CHECK(taken.error().code() == ErrorCode::not_found);
    }
    SECTION("under a name that is taken") {
        REQUIRE(succeeded(fixture.snapshot(spec.id, id)));
        const auto taken = fixture.snapshot(spec.id, id);
        REQUIRE_FALSE(taken.has_value());
        CHECK(taken.error().code() == ErrorCode::conflict);
        REQUIRE(succeeded(fixture.remove_snapshot(id)));
    }
    SECTION("of what cannot be copied") {
        // Deeper than is copied.
        auto at = fixture.slot_of(spec.id) / "u" / "deep";
        std::filesystem::create_directory(at);
        UniqueFd fd(::open(at.c_str(), O_RDONLY | O_DIRECTORY));
        for (int depth = 0; depth < 2'100; ++depth) {
            REQUIRE(::mkdirat(fd.get(), "d", 0755) == 0);
            fd = UniqueFd(::openat(fd.get(), "d", O_RDONLY | O_DIRECTORY));
        }
        const auto taken = fixture.snapshot(spec.id, id);
        REQUIRE_FALSE(taken.has_value());
        CHECK(taken.error().message().find("nested deeper") != std::string::npos);
    }
    CHECK(eventually([&] { return fixture.snapshot_files().empty(); }));
    CHECK(fixture.snapshots().empty());
    CHECK(http_get(*agent, "/ping", "token").starts_with("HTTP/1.1 200"));
}

TEST_CASE("a spawner that dies over a snapshot leaves none and no sandbox stopped",
          "[runtime][snapshot]") {
    SpawnerFixture fixture(0);
    const SandboxSpec spec = does("seq 100000 > /big");
    const auto agent = fixture.create(spec);
    REQUIRE(succeeded(agent));
    await_ready(fixture, spec.id);
    const auto layer = fixture.slot_of(spec.id) / "u";
    for (int i = 0; i < 1000; ++i)
        std::filesystem::copy_file(layer / "big", layer / ("big" + std::to_string(i)));
    const std::string id = new_uuid();
    const auto staging = fixture.state() / "snapshots" / "staging";
    const auto taken = fixture.snapshot(spec.id, id, [&] {
        if (std::filesystem::is_empty(staging)) return false;
        fixture.kill_spawner();
        fixture.start_spawner();
        return true;
    });
    REQUIRE_FALSE(taken.has_value());
    CHECK(taken.error().code() == ErrorCode::unavailable);
    CHECK(fixture.snapshots().empty());
    CHECK(eventually([&] { return fixture.snapshot_files().empty(); }));
    CHECK(http_get(*agent, "/ping", "token").starts_with("HTTP/1.1 200"));
    CHECK(succeeded(fixture.snapshot(spec.id, id)));
}
