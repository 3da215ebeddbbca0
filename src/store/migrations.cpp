#include "store/migrations.hpp"

#include <array>
#include <string>

namespace opensandbox::store {
namespace {

/// Steps in order; never changed once released, only added to. Times are microseconds since the
/// epoch.
constexpr std::array<const char*, 1> kSteps{
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
