#include "store/sandbox_store.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <thread>

using namespace opensandbox;

namespace {

using Scratch = test_support::ScratchDirectory;

store::SnapshotRecord example(const std::string& id, std::size_t size = 10) {
    store::SnapshotRecord record;
    record.snapshot.id = id;
    record.snapshot.status.message = std::string(size, 'x');
    return record;
}

}  // namespace

TEST_CASE("a database that another program holds: writes fail clearly, later ones succeed") {
    Scratch scratch;
    auto file = scratch.path / "test.db";
    auto opened = store::SandboxStore::open(file, std::chrono::milliseconds(20));
    REQUIRE(opened);
    auto& snapshots = (*opened)->snapshots();
    REQUIRE(snapshots.insert(example("before")));
    {
        auto other = store::Database::open(file);
        auto held = store::Transaction::begin(*other);
        REQUIRE(held);
        auto refused = snapshots.insert(example("while"));
        REQUIRE_FALSE(refused);
        REQUIRE(refused.error().code() == ErrorCode::unavailable);
        REQUIRE(refused.error().message().find("another program holds") != std::string::npos);
        store::SandboxRecord record;
        record.sandbox.id = "one";
        auto keyed = (*opened)->insert(record, store::KeyRecord("k", "d", "one", now()));
        REQUIRE(keyed.error().code() == ErrorCode::unavailable);
        REQUIRE(snapshots.load()->size() == 1);
    }
    REQUIRE(snapshots.insert(example("after")));
    REQUIRE(snapshots.load()->size() == 2);
    REQUIRE((*opened)->load_sandboxes()->empty());
    REQUIRE((*opened)->load_keys()->empty());
}

TEST_CASE("a writer that waits too long for its turn fails clearly") {
    Scratch scratch;
    auto opened = store::Connection::open(scratch.path / "test.db", std::chrono::milliseconds(20));
    REQUIRE(opened);
    ErrorCode refused = ErrorCode::internal;
    {
        auto held = (*opened)->lease();
        REQUIRE(held);
        std::jthread other([&] {
            auto lease = (*opened)->lease();
            if (!lease) refused = lease.error().code();
        });
    }
    REQUIRE(refused == ErrorCode::unavailable);
    REQUIRE((*opened)->lease());
}

TEST_CASE("a full disk: writes fail clearly, nothing is lost, room makes them succeed again") {
    Scratch scratch;
    auto file = scratch.path / "test.db";
    auto opened = store::Connection::open(file);
    REQUIRE(opened);
    std::shared_ptr<store::Connection> connection = std::move(opened.value());
    auto snapshots = store::SnapshotStore::open(connection);
    REQUIRE((*snapshots)->insert(example("before")));
    // The engine reports its own limit as it reports the disk's.
    REQUIRE(connection->database().execute("PRAGMA max_page_count = 1"));
    auto refused = (*snapshots)->insert(example("while", 100'000));
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().code() == ErrorCode::unavailable);
    REQUIRE(refused.error().message().find("full") != std::string::npos);
    REQUIRE((*snapshots)->load()->size() == 1);
    REQUIRE(connection->database().execute("PRAGMA max_page_count = 1000000"));
    REQUIRE((*snapshots)->insert(example("after", 100'000)));
    REQUIRE((*snapshots)->load()->size() == 2);
}

TEST_CASE("one server holds a store, by whatever name it is opened") {
    Scratch scratch;
    auto file = scratch.path / "test.db";
    auto link = scratch.path / "link.db";
    std::filesystem::create_symlink(file, link);
    {
        auto first = store::SandboxStore::open(file);
        REQUIRE(first);
        for (const auto& name : {file, link, scratch.path / "." / "test.db"}) {
            auto second = store::SandboxStore::open(name);
            REQUIRE_FALSE(second);
            CHECK(second.error().code() == ErrorCode::conflict);
            CHECK(second.error().message().find("another server holds the store") !=
                  std::string::npos);
        }
    }
    REQUIRE(store::SandboxStore::open(link));
}
