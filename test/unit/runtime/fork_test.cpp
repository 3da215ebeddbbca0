#include "base/identifier.hpp"
#include "runtime/native/spawner/snapshots/snapshot_files.hpp"
#include "unit/runtime/outcome.hpp"
#include "unit/runtime/spawner_fixture.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <fstream>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::test;

namespace {

constexpr const char* kWait = "; echo > /ready; exec sleep 1000";

bool eventually(const std::function<bool()>& condition) {
    for (int round = 0; round < 1000; ++round) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

/// A sandbox that did `script`.
SandboxSpec source_of(SpawnerFixture& fixture, const std::string& script) {
    SandboxSpec spec = SpawnerFixture::shell(script + kWait);
    spec.env.emplace_back("COLOUR", "blue");
    spec.limits.pids = 77;
    REQUIRE(succeeded(fixture.create(spec)));
    const auto ready = fixture.slot_of(spec.id) / "u" / "ready";
    REQUIRE(eventually([&] { return std::filesystem::exists(ready); }));
    return spec;
}

SandboxSpec copy_of(const std::string& base, const std::string& script) {
    SandboxSpec spec = SpawnerFixture::shell(script);
    spec.image.clear();
    spec.snapshot.emplace(base, base);
    return spec;
}

std::string fork_of(SpawnerFixture& fixture, const std::string& id) {
    const std::string base = new_uuid();
    auto kept = fixture.fork(id, base);
    REQUIRE(succeeded(kept));
    CHECK(kept->id == base);
    return base;
}

int code_of(SpawnerFixture& fixture, const SandboxSpec& spec) {
    REQUIRE(succeeded(fixture.create(spec)));
    const Exit exit = fixture.wait_exit(spec.id);
    CHECK(succeeded(fixture.destroy(spec.id)));
    return exit.code;
}

bool nothing_left(const SpawnerFixture& fixture) {
    return eventually([&] { return fixture.snapshot_files().empty(); });
}

}  // namespace

TEST_CASE("copies of a sandbox have its files, environment and limits, each for itself",
          "[runtime][fork]") {
    SpawnerFixture fixture(1);
    const SandboxSpec source = source_of(fixture, "echo 1 > /a; echo 2 > /usr/local/share/b");
    const std::string base = fork_of(fixture, source.id);
    CHECK(fixture.snapshots().empty());
    const SandboxSpec writer = copy_of(
        base, "echo changed > /a; rm /usr/local/share/b; test \"$COLOUR\" = blue || exit 1; " +
                  std::string("test $OPENSANDBOX_ID = ") + "$EXPECTED || exit 2; exit 100");
    SandboxSpec named = writer;
    named.env.emplace_back("EXPECTED", named.id);
    CHECK(code_of(fixture, named) == 100);
    SandboxSpec reader =
        copy_of(base,
                "test $(cat /a) = 1 && test $(cat /usr/local/share/b) = 2 || exit 1; "
                "test $COLOUR = red && exit 100");
    reader.env.emplace_back("COLOUR", "red");
    CHECK(code_of(fixture, reader) == 100);
    const SandboxSpec limited = copy_of(base, "exec sleep 1000");
    REQUIRE(succeeded(fixture.create(limited)));
    auto seen = fixture.inspect(limited.id);
    REQUIRE(succeeded(seen));
    CHECK(seen->limits.pids == 77);
    REQUIRE(succeeded(fixture.remove_snapshot(base)));
    CHECK_FALSE(fixture.snapshot_files().empty());
    REQUIRE(succeeded(fixture.destroy(limited.id)));
    CHECK(nothing_left(fixture));
}

TEST_CASE("what copies stand on goes with the last of them, in any order", "[runtime][fork]") {
    SpawnerFixture fixture(2);
    const SandboxSpec source = source_of(fixture, "echo 1 > /a");
    const std::string base = fork_of(fixture, source.id);
    const SandboxSpec first = copy_of(base, "exec sleep 1000");
    REQUIRE(succeeded(fixture.create(first)));
    const SandboxSpec second = copy_of(base, std::string("echo 2 > /b") + kWait);
    REQUIRE(succeeded(fixture.create(second)));
    REQUIRE(succeeded(fixture.remove_snapshot(base)));
    // A copy is a sandbox as any: it can be forked, and kept.
    const auto ready = fixture.slot_of(second.id) / "u" / "ready";
    REQUIRE(eventually([&] { return std::filesystem::exists(ready); }));
    SECTION("a snapshot of a copy outlives both") {
        const std::string snapshot = new_uuid();
        REQUIRE(succeeded(fixture.snapshot(second.id, snapshot)));
        REQUIRE(succeeded(fixture.destroy(source.id)));
        REQUIRE(succeeded(fixture.destroy(second.id)));
        REQUIRE(succeeded(fixture.destroy(first.id)));
        SECTION("and a spawner") {
            fixture.kill_spawner();
            fixture.start_spawner();
            fixture.connect();
        }
        const std::string check = "test $(cat /a) = 1 && test $(cat /b) = 2 && exit 100";
        CHECK(code_of(fixture, copy_of(snapshot, check)) == 100);
        REQUIRE(succeeded(fixture.remove_snapshot(snapshot)));
    }
    SECTION("a copy of a copy outlives both") {
        const std::string again = fork_of(fixture, second.id);
        const SandboxSpec third =
            copy_of(again, "test $(cat /a) = 1 && test $(cat /b) = 2 && exit 100");
        REQUIRE(succeeded(fixture.create(third)));
        REQUIRE(succeeded(fixture.remove_snapshot(again)));
        REQUIRE(succeeded(fixture.destroy(first.id)));
        REQUIRE(succeeded(fixture.destroy(second.id)));
        CHECK(fixture.wait_exit(third.id).code == 100);
        // It ended, and its files are still there.
        CHECK_FALSE(fixture.snapshot_files().empty());
        REQUIRE(succeeded(fixture.destroy(third.id)));
        REQUIRE(succeeded(fixture.destroy(source.id)));
    }
    SECTION("the copies alone") {
        REQUIRE(succeeded(fixture.destroy(first.id)));
        CHECK_FALSE(fixture.snapshot_files().empty());
        REQUIRE(succeeded(fixture.destroy(second.id)));
    }
    CHECK(nothing_left(fixture));
}

TEST_CASE("a paused sandbox is copied and stays paused", "[runtime][fork]") {
    SpawnerFixture fixture(1);
    const SandboxSpec source = source_of(fixture, "echo 1 > /a");
    REQUIRE(succeeded(fixture.pause(source.id)));
    const std::string base = fork_of(fixture, source.id);
    CHECK(fixture.list()[0].paused);
    CHECK(code_of(fixture, copy_of(base, "test $(cat /a) = 1 && exit 100")) == 100);
    REQUIRE(succeeded(fixture.remove_snapshot(base)));
    CHECK(nothing_left(fixture));
}

TEST_CASE("what nobody makes copies of any more goes with server and spawner", "[runtime][fork]") {
    SpawnerFixture fixture(1);
    const SandboxSpec source = source_of(fixture, "echo 1 > /a");
    const std::string base = fork_of(fixture, source.id);
    CHECK_FALSE(fixture.snapshot_files().empty());
    SECTION("the server") {
        // Another connection takes the place of the one that asked for it.
        fixture.connect();
    }
    SECTION("the spawner") {
        fixture.kill_spawner();
        fixture.start_spawner();
        fixture.connect();
    }
    SECTION("the server, with a copy made") {
        const SandboxSpec copy = copy_of(base, "exec sleep 1000");
        REQUIRE(succeeded(fixture.create(copy)));
        fixture.connect();
        CHECK(eventually([&] { return fixture.snapshot_files().size() == 1; }));
        REQUIRE(succeeded(fixture.destroy(copy.id)));
    }
    CHECK(nothing_left(fixture));
    auto refused = fixture.create(copy_of(base, "true"));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::not_found);
}

TEST_CASE("as many layers as may be stacked can be; one more is refused before anything is made",
          "[runtime][fork]") {
    SpawnerFixture fixture(1);
    const SandboxSpec source = source_of(fixture, "echo 1 > /a");
    const std::string bottom = new_uuid();
    REQUIRE(succeeded(fixture.snapshot(source.id, bottom)));
    // A snapshot of a snapshot and so on, as many as fit over the image's own layers.
    const native::SnapshotFiles files(fixture.state());
    auto record = files.read(bottom);
    REQUIRE(succeeded(record));
    std::string top;
    while (record->layers.size() + record->image.layers.size() < native::kMaxLowers) {
        top = new_uuid();
        std::filesystem::create_directories(files.layer(top) / "u");
        record->layers.insert(record->layers.begin(), top);
    }
    record->id = top;
    std::ofstream(fixture.state() / "snapshots" / (top + ".json"))
        << native::format_snapshot(*record);
    fixture.kill_spawner();
    fixture.start_spawner();
    fixture.connect();
    SandboxSpec high = copy_of(top, "test $(cat /a) = 1 && exec sleep 1000");
    REQUIRE(succeeded(fixture.create(high)));
    const auto before = fixture.snapshot_files();
    for (const bool for_copies : {false, true}) {
        auto refused =
            for_copies ? fixture.fork(high.id, new_uuid()) : fixture.snapshot(high.id, new_uuid());
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code() == ErrorCode::conflict);
        CHECK(refused.error().message().find("no more than 400 layers") != std::string::npos);
        CHECK(fixture.snapshot_files() == before);
    }
    CHECK_FALSE(fixture.list()[0].paused);
    REQUIRE(succeeded(fixture.destroy(high.id)));
    REQUIRE(succeeded(fixture.remove_snapshot(top)));
    REQUIRE(succeeded(fixture.remove_snapshot(bottom)));
    CHECK(nothing_left(fixture));
}
