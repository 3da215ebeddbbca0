#include "store/sandbox_store.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

namespace {

using Scratch = test_support::ScratchDirectory;

store::SnapshotRecord example_snapshot(const std::string& id) {
    store::SnapshotRecord record;
    record.snapshot.id = id;
    record.snapshot.sandbox_id = "source";
    record.snapshot.created_at = *parse_rfc3339("2026-01-01T00:00:00.5Z");
    record.snapshot.status = model::SnapshotStatus(model::SnapshotState::creating, "reason",
                                                   "message", record.snapshot.created_at);
    record.tenant = "tenant";
    record.base_image = "host";
    return record;
}

store::PoolRecord example_pool(const std::string& tenant, const std::string& name) {
    store::PoolRecord record;
    record.tenant = tenant;
    record.pool.name = name;
    record.pool.template_json = R"({"image":{"uri":"host"}})";
    record.pool.capacity = model::PoolCapacity(1, 2, 3, 4);
    record.pool.created_at = *parse_rfc3339("2026-01-01T00:00:00Z");
    return record;
}

}  // namespace

TEST_CASE("what a later version of the schema keeps of a sandbox comes back") {
    Scratch scratch;
    auto opened = store::SandboxStore::open(scratch.path / "test.db");
    store::SandboxRecord record;
    record.sandbox.id = "one";
    record.sandbox.snapshot_id = "snapshot";
    record.sandbox.pool = "pool";
    record.base_image = "base";
    record.tenant = "tenant";
    record.cpu_millicores = 1500;
    record.memory_bytes = 1LL << 40;
    record.pool_idle = true;
    REQUIRE((*opened)->insert(record, std::nullopt));
    record.endpoints = model::AgentAddress("10.0.0.1", 44772);
    record.endpoints.http_port = 8081;
    record.endpoints.internal_host = "10.0.0.2";
    record.endpoints.host_network = true;
    record.endpoints.egress_token = "egress";
    REQUIRE((*opened)->set_running(record));
    auto row = (*opened)->load_sandboxes()->front();
    CHECK(row.sandbox.snapshot_id == "snapshot");
    CHECK(row.sandbox.pool == "pool");
    CHECK(row.base_image == "base");
    CHECK(row.tenant == "tenant");
    CHECK(row.cpu_millicores == 1500);
    CHECK(row.memory_bytes == 1LL << 40);
    CHECK(row.pool_idle);
    CHECK(row.endpoints == record.endpoints);
}

TEST_CASE("a row is replaced whole, together with a key or not at all") {
    Scratch scratch;
    auto opened = store::SandboxStore::open(scratch.path / "test.db");
    store::SandboxRecord record;
    record.sandbox.id = "one";
    record.pool_idle = true;
    REQUIRE((*opened)->insert(record, std::nullopt));
    record.pool_idle = false;
    record.sandbox.metadata.emplace();
    REQUIRE((*opened)->replace(record, store::KeyRecord("k", "d", "one", now())));
    auto rows = (*opened)->load_sandboxes();
    REQUIRE(rows->size() == 1);
    REQUIRE_FALSE(rows->front().pool_idle);
    REQUIRE(rows->front().sandbox.metadata);
    REQUIRE((*opened)->load_keys()->size() == 1);
}

TEST_CASE("rows of the first schema are kept by the second") {
    Scratch scratch;
    auto file = scratch.path / "test.db";
    {
        auto database = store::Database::open(file);
        REQUIRE(database->execute(R"(
            CREATE TABLE sandboxes (
                id TEXT PRIMARY KEY, image TEXT NOT NULL, platform_os TEXT NOT NULL,
                platform_arch TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
                message TEXT NOT NULL, transition_at INTEGER NOT NULL, metadata TEXT,
                extensions TEXT NOT NULL, entrypoint TEXT NOT NULL, expires_at INTEGER,
                created_at INTEGER NOT NULL, agent_host TEXT NOT NULL, agent_port INTEGER NOT NULL,
                agent_token TEXT NOT NULL, renew_seconds INTEGER) STRICT, WITHOUT ROWID;
            CREATE TABLE idempotency_keys (
                key TEXT PRIMARY KEY, body_digest TEXT NOT NULL, sandbox_id TEXT NOT NULL,
                created_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
            INSERT INTO sandboxes VALUES ('old', 'host', '', '', 'Running', '', '', 1, NULL, '{}',
                '["sh"]', NULL, 1, '127.0.0.1', 40000, 'token', 300);
            PRAGMA user_version = 1;)"));
    }
    auto opened = store::SandboxStore::open(file);
    REQUIRE(opened);
    auto rows = (*opened)->load_sandboxes();
    REQUIRE(rows->size() == 1);
    REQUIRE(rows->front().base_image == "host");
    REQUIRE(rows->front().agent_token == "token");
    REQUIRE(rows->front().tenant.empty());
}

TEST_CASE("snapshots: written, changed, removed") {
    Scratch scratch;
    auto opened = store::SandboxStore::open(scratch.path / "test.db");
    auto& snapshots = (*opened)->snapshots();
    auto named = example_snapshot("named");
    named.snapshot.name = "name";
    REQUIRE(snapshots.insert(named));
    REQUIRE(snapshots.insert(example_snapshot("nameless")));
    REQUIRE_FALSE(snapshots.insert(named));
    named.snapshot.status = model::SnapshotStatus(model::SnapshotState::ready, "done", "m", now());
    named.reference = "layer";
    REQUIRE(snapshots.set_status(named));
    auto rows = snapshots.load();
    REQUIRE(rows->size() == 2);
    for (const auto& row : rows.value()) {
        bool is_named = row.snapshot.id == "named";
        CHECK(row.snapshot.name.has_value() == is_named);
        CHECK(row.reference == (is_named ? "layer" : ""));
        CHECK(row.tenant == "tenant");
        CHECK(row.base_image == "host");
        CHECK(row.snapshot.sandbox_id == "source");
        if (is_named) CHECK(row.snapshot.status == named.snapshot.status);
    }
    REQUIRE(snapshots.remove("named"));
    REQUIRE(snapshots.remove("named"));
    REQUIRE(snapshots.load()->size() == 1);
}

TEST_CASE("pools: a name is one tenant's") {
    Scratch scratch;
    auto opened = store::SandboxStore::open(scratch.path / "test.db");
    auto& pools = (*opened)->pools();
    auto pool = example_pool("a", "python");
    REQUIRE(pools.insert(pool));
    REQUIRE(pools.insert(example_pool("b", "python")));
    auto again = pools.insert(pool);
    REQUIRE_FALSE(again);
    REQUIRE(again.error().code() == ErrorCode::conflict);
    pool.pool.capacity = model::PoolCapacity(0, 0, 0, 9);
    pool.pool.revision = 2;
    REQUIRE(pools.set_capacity(pool));
    for (const auto& row : pools.load().value()) {
        bool changed = row.tenant == "a";
        CHECK(row.pool.revision == (changed ? 2 : 1));
        CHECK((row.pool.capacity == pool.pool.capacity) == changed);
        CHECK(row.pool.template_json == pool.pool.template_json);
        CHECK(row.pool.created_at == pool.pool.created_at);
    }
    REQUIRE(pools.remove("a", "python"));
    REQUIRE(pools.load()->size() == 1);
}
