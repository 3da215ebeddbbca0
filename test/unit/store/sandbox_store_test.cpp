#include "store/sandbox_store.hpp"

#include "store/database.hpp"
#include "store/state_lock.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <filesystem>

using namespace opensandbox;

namespace {

using Scratch = test_support::ScratchDirectory;

store::SandboxRecord example(const std::string& id) {
    store::SandboxRecord record;
    record.sandbox.id = id;
    record.sandbox.image_uri = "host";
    record.sandbox.platform = model::Platform("linux", "amd64");
    record.sandbox.created_at = *parse_rfc3339("2026-01-01T00:00:00.5Z");
    record.sandbox.expires_at = *parse_rfc3339("2027-01-01T00:00:00Z");
    record.sandbox.status =
        model::SandboxStatus(model::SandboxState::pending, "r", "m", record.sandbox.created_at);
    record.sandbox.metadata = model::StringMap{{"z", "1"}, {"a", "\"quoted\" ä"}};
    record.sandbox.extensions = {{"opensandbox.extensions.x", "y"}};
    record.sandbox.entrypoint = {"sh", "-c", ""};
    record.agent_token = "token";
    record.renew_seconds = 300;
    return record;
}

}  // namespace

TEST_CASE("a row comes back as it was written, also after reopening") {
    Scratch scratch;
    auto file = scratch.path / "test.db";
    auto record = example("one");
    {
        auto opened = store::SandboxStore::open(file);
        REQUIRE(opened);
        REQUIRE((*opened)->insert(record, std::nullopt));
    }
    auto opened = store::SandboxStore::open(file);
    REQUIRE(opened);
    auto rows = (*opened)->load_sandboxes();
    REQUIRE(rows);
    REQUIRE(rows->size() == 1);
    const auto& row = rows->front();
    REQUIRE(model::to_json(row.sandbox) == model::to_json(record.sandbox));
    REQUIRE(row.agent_token == "token");
    REQUIRE(row.renew_seconds == 300);
}

TEST_CASE("absent and empty metadata stay apart") {
    Scratch scratch;
    auto opened = store::SandboxStore::open(scratch.path / "test.db");
    auto absent = example("absent");
    absent.sandbox.metadata.reset();
    absent.sandbox.platform.reset();
    absent.sandbox.expires_at.reset();
    auto empty = example("empty");
    empty.sandbox.metadata.emplace();
    REQUIRE((*opened)->insert(absent, std::nullopt));
    REQUIRE((*opened)->insert(empty, std::nullopt));
    auto rows = (*opened)->load_sandboxes();
    REQUIRE(rows->size() == 2);
    for (const auto& row : rows.value()) {
        REQUIRE(row.sandbox.metadata.has_value() == (row.sandbox.id == "empty"));
        REQUIRE(row.sandbox.expires_at.has_value() == (row.sandbox.id == "empty"));
    }
}

TEST_CASE("each change touches its own columns") {
    Scratch scratch;
    auto opened = store::SandboxStore::open(scratch.path / "test.db");
    auto& store = **opened;
    auto record = example("one");
    REQUIRE(store.insert(record, std::nullopt));
    record.endpoints.agent.host = "127.0.0.1";
    record.endpoints.agent.port = 41000;
    record.endpoints.published = {{8080, 41001}, {5432, 41002}};
    record.sandbox.status.state = model::SandboxState::running;
    REQUIRE(store.set_running(record));
    REQUIRE(store.set_expiry("one", std::nullopt));
    REQUIRE(store.set_metadata("one", {{"k", "v"}}));
    auto row = store.load_sandboxes()->front();
    REQUIRE(row.endpoints.agent.port == 41000);
    REQUIRE(row.endpoints.published == record.endpoints.published);
    REQUIRE(row.sandbox.status.state == model::SandboxState::running);
    REQUIRE_FALSE(row.sandbox.expires_at);
    REQUIRE(*row.sandbox.metadata == model::StringMap{{"k", "v"}});
    REQUIRE(row.agent_token == "token");
    REQUIRE(store.remove("one"));
    REQUIRE(store.remove("one"));
    REQUIRE(store.load_sandboxes()->empty());
}

TEST_CASE("sandbox and key are written together or not at all") {
    Scratch scratch;
    auto opened = store::SandboxStore::open(scratch.path / "test.db");
    auto& store = **opened;
    store::KeyRecord key("k", "digest", "one", now());
    REQUIRE(store.insert(example("one"), key));
    store::KeyRecord other("k2", "digest", "one", now());
    auto repeated = store.insert(example("one"), other);
    REQUIRE_FALSE(repeated);
    REQUIRE(repeated.error().code() == ErrorCode::conflict);
    REQUIRE(store.load_keys()->size() == 1);
    REQUIRE(store.insert(example("two"), std::nullopt));
}

TEST_CASE("a removed sandbox leaves its key, an undone one does not") {
    Scratch scratch;
    auto opened = store::SandboxStore::open(scratch.path / "test.db");
    auto& store = **opened;
    REQUIRE(store.insert(example("one"), store::KeyRecord("k1", "d", "one", now())));
    REQUIRE(store.insert(example("two"), store::KeyRecord("k2", "d", "two", now())));
    REQUIRE(store.remove("one"));
    REQUIRE(store.undo_insert("two"));
    auto keys = store.load_keys();
    REQUIRE(keys->size() == 1);
    REQUIRE(keys->front().key == "k1");
    REQUIRE(store.remove_keys_before(now() + std::chrono::hours(1)));
    REQUIRE(store.load_keys()->empty());
}

TEST_CASE("the file is private and in WAL mode") {
    Scratch scratch;
    auto file = scratch.path / "test.db";
    auto opened = store::SandboxStore::open(file);
    REQUIRE((*opened)->insert(example("one"), std::nullopt));
    for (const auto& entry : std::filesystem::directory_iterator(scratch.path)) {
        struct stat info{};
        REQUIRE(::stat(entry.path().c_str(), &info) == 0);
        INFO(entry.path());
        REQUIRE((info.st_mode & 0777) == 0600);
    }
    auto database = store::Database::open(file);
    auto mode = database->prepare("PRAGMA journal_mode");
    REQUIRE(mode->step());
    REQUIRE(mode->text(0) == "wal");
}

TEST_CASE("a file of a newer version is refused") {
    Scratch scratch;
    auto file = scratch.path / "test.db";
    {
        auto database = store::Database::open(file);
        REQUIRE(database->execute("PRAGMA user_version = 99"));
    }
    auto opened = store::SandboxStore::open(file);
    REQUIRE_FALSE(opened);
    REQUIRE(opened.error().code() == ErrorCode::unsupported);
}

TEST_CASE("a file that is no database is refused") {
    Scratch scratch;
    auto file = scratch.path / "test.db";
    {
        FILE* out = std::fopen(file.c_str(), "w");
        for (int i = 0; i < 2000; ++i)
            std::fputs("not a database ", out);
        std::fclose(out);
    }
    REQUIRE_FALSE(store::SandboxStore::open(file));
}

TEST_CASE("an open transaction is rolled back when it is dropped") {
    Scratch scratch;
    auto database = store::Database::open(scratch.path / "test.db");
    REQUIRE(database->execute("CREATE TABLE t (x)"));
    {
        auto transaction = store::Transaction::begin(*database);
        REQUIRE(transaction);
        REQUIRE(database->execute("INSERT INTO t VALUES (1)"));
    }
    auto count = database->prepare("SELECT count(*) FROM t");
    REQUIRE(count->step());
    REQUIRE(count->number(0) == 0);
}

TEST_CASE("one server holds a state directory, made private") {
    Scratch scratch;
    auto directory = scratch.path / "state";
    auto first = std::make_unique<Result<store::StateLock>>(store::StateLock::acquire(directory));
    REQUIRE(*first);
    struct stat info{};
    REQUIRE(::stat(directory.c_str(), &info) == 0);
    REQUIRE((info.st_mode & 0777) == 0700);
    auto second = store::StateLock::acquire(directory);
    REQUIRE_FALSE(second);
    REQUIRE(second.error().code() == ErrorCode::conflict);
    REQUIRE(second.error().message().find(directory.string()) != std::string::npos);
    first.reset();
    REQUIRE(store::StateLock::acquire(directory));
}
