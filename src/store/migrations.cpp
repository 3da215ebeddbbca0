#include "store/connection.hpp"

#include <array>
#include <string>

namespace opensandbox::store {
namespace {

/// Steps in order; never changed once released, only added to. Times are microseconds since the
/// epoch.
constexpr std::array<const char*, 6> kSteps{
    R"(CREATE TABLE sandboxes (
           id TEXT PRIMARY KEY,
           image TEXT NOT NULL,
           platform_os TEXT NOT NULL,
           platform_arch TEXT NOT NULL,
           state TEXT NOT NULL,
           reason TEXT NOT NULL,
           message TEXT NOT NULL,
           transition_at INTEGER NOT NULL,
           metadata TEXT,
           extensions TEXT NOT NULL,
           entrypoint TEXT NOT NULL,
           expires_at INTEGER,
           created_at INTEGER NOT NULL,
           agent_host TEXT NOT NULL,
           agent_port INTEGER NOT NULL,
           agent_token TEXT NOT NULL,
           renew_seconds INTEGER
       ) STRICT, WITHOUT ROWID;
       CREATE INDEX sandboxes_by_expiry ON sandboxes (expires_at) WHERE expires_at IS NOT NULL;
       CREATE TABLE idempotency_keys (
           key TEXT PRIMARY KEY,
           body_digest TEXT NOT NULL,
           sandbox_id TEXT NOT NULL,
           created_at INTEGER NOT NULL
       ) STRICT, WITHOUT ROWID;
       CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
       CREATE INDEX idempotency_keys_by_sandbox ON idempotency_keys (sandbox_id);)",
    R"(ALTER TABLE sandboxes ADD COLUMN snapshot_id TEXT NOT NULL DEFAULT '';
       ALTER TABLE sandboxes ADD COLUMN base_image TEXT NOT NULL DEFAULT '';
       ALTER TABLE sandboxes ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
       ALTER TABLE sandboxes ADD COLUMN http_port INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE sandboxes ADD COLUMN internal_host TEXT NOT NULL DEFAULT '';
       ALTER TABLE sandboxes ADD COLUMN host_network INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE sandboxes ADD COLUMN egress_token TEXT NOT NULL DEFAULT '';
       ALTER TABLE sandboxes ADD COLUMN cpu_millicores INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE sandboxes ADD COLUMN memory_bytes INTEGER NOT NULL DEFAULT 0;
       ALTER TABLE sandboxes ADD COLUMN pool TEXT NOT NULL DEFAULT '';
       ALTER TABLE sandboxes ADD COLUMN pool_idle INTEGER NOT NULL DEFAULT 0;
       UPDATE sandboxes SET base_image = image;
       CREATE TABLE snapshots (
           id TEXT PRIMARY KEY,
           sandbox_id TEXT NOT NULL,
           name TEXT,
           tenant TEXT NOT NULL,
           base_image TEXT NOT NULL,
           state TEXT NOT NULL,
           reason TEXT NOT NULL,
           message TEXT NOT NULL,
           transition_at INTEGER NOT NULL,
           created_at INTEGER NOT NULL,
           reference TEXT NOT NULL
       ) STRICT, WITHOUT ROWID;
       CREATE TABLE pools (
           tenant TEXT NOT NULL,
           name TEXT NOT NULL,
           template TEXT NOT NULL,
           buffer_max INTEGER NOT NULL,
           buffer_min INTEGER NOT NULL,
           pool_max INTEGER NOT NULL,
           pool_min INTEGER NOT NULL,
           revision INTEGER NOT NULL,
           created_at INTEGER NOT NULL,
           PRIMARY KEY (tenant, name)
       ) STRICT, WITHOUT ROWID;)",
    R"(ALTER TABLE sandboxes ADD COLUMN published TEXT NOT NULL DEFAULT '';)",
    R"(ALTER TABLE sandboxes ADD COLUMN egress_port INTEGER NOT NULL DEFAULT 0;)",
    R"(ALTER TABLE sandboxes ADD COLUMN image_digest TEXT NOT NULL DEFAULT '';)",
    R"(ALTER TABLE sandboxes ADD COLUMN interception_mode TEXT NOT NULL DEFAULT '';)",
};

Result<std::int64_t> version_of(Database& database) {
    auto statement = database.prepare("PRAGMA user_version");
    if (!statement) return statement.error();
    auto row = statement->step();
    if (!row) return row.error();
    return statement->number(0);
}

}  // namespace

Status migrate(Database& database) {
    auto version = version_of(database);
    if (!version) return version.error();
    auto known = static_cast<std::int64_t>(kSteps.size());
    if (*version > known) {
        return Error(ErrorCode::unsupported,
                     "store: the file has version " + std::to_string(*version) +
                         ", this program knows " + std::to_string(known) + "; use a newer program");
    }
    for (std::int64_t step = *version; step < known; ++step) {
        auto transaction = Transaction::begin(database);
        if (!transaction) return transaction.error();
        auto done = database.execute(kSteps[static_cast<std::size_t>(step)]);
        if (!done) return done;
        auto marked = database.execute("PRAGMA user_version = " + std::to_string(step + 1));
        if (!marked) return marked;
        if (auto committed = transaction->commit(); !committed) return committed;
    }
    return {};
}

}  // namespace opensandbox::store
