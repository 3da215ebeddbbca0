#include "store/sandbox_store.hpp"

#include "store/database.hpp"
#include "store/migrations.hpp"
#include "store/row_json.hpp"

#include <mutex>

namespace opensandbox::store {
namespace {

std::int64_t micros(Timestamp at) {
    return at.time_since_epoch().count();
}
Timestamp from_micros(std::int64_t number) {
    return Timestamp(std::chrono::microseconds(number));
}

std::optional<std::int64_t> micros(const std::optional<Timestamp>& at) {
    if (!at) return std::nullopt;
    return micros(*at);
}

constexpr std::string_view kColumns =
    "id, image, platform_os, platform_arch, state, reason, message, transition_at, metadata, "
    "extensions, entrypoint, expires_at, created_at, agent_host, agent_port, agent_token, "
    "renew_seconds";

void bind_record(Statement& insert, const SandboxRecord& record) {
    const model::Sandbox& sandbox = record.sandbox;
    insert.bind(1, sandbox.id);
    insert.bind(2, sandbox.image_uri);
    insert.bind(3, sandbox.platform ? std::string_view(sandbox.platform->os) : std::string_view());
    insert.bind(4,
                sandbox.platform ? std::string_view(sandbox.platform->arch) : std::string_view());
    insert.bind(5, model::to_string(sandbox.status.state));
    insert.bind(6, sandbox.status.reason);
    insert.bind(7, sandbox.status.message);
    insert.bind(8, micros(sandbox.status.last_transition_at));
    if (sandbox.metadata) {
        insert.bind(9, map_to_json(*sandbox.metadata));
    } else {
        insert.bind_null(9);
    }
    insert.bind(10, map_to_json(sandbox.extensions));
    insert.bind(11, list_to_json(sandbox.entrypoint));
    insert.bind(12, micros(sandbox.expires_at));
    insert.bind(13, micros(sandbox.created_at));
    insert.bind(14, record.endpoints.agent.host);
    insert.bind(15, static_cast<std::int64_t>(record.endpoints.agent.port));
    insert.bind(16, record.agent_token);
    insert.bind(17, record.renew_seconds);
}

Result<SandboxRecord> read_record(const Statement& row) {
    SandboxRecord record;
    model::Sandbox& sandbox = record.sandbox;
    sandbox.id = row.text(0);
    auto broken = [&](std::string_view column) {
        return Error(ErrorCode::io,
                     "store: sandbox " + sandbox.id + ": unreadable column " + std::string(column));
    };
    sandbox.image_uri = row.text(1);
    if (std::string os = row.text(2); !os.empty())
        sandbox.platform = model::Platform(os, row.text(3));
    auto state = model::parse_state(row.text(4));
    if (!state) return broken("state");
    sandbox.status =
        model::SandboxStatus(*state, row.text(5), row.text(6), from_micros(row.number(7)));
    if (!row.is_null(8)) {
        sandbox.metadata = map_from_json(row.text(8));
        if (!sandbox.metadata) return broken("metadata");
    }
    auto extensions = map_from_json(row.text(9));
    if (!extensions) return broken("extensions");
    sandbox.extensions = std::move(*extensions);
    auto entrypoint = list_from_json(row.text(10));
    if (!entrypoint) return broken("entrypoint");
    sandbox.entrypoint = std::move(*entrypoint);
    if (!row.is_null(11)) sandbox.expires_at = from_micros(row.number(11));
    sandbox.created_at = from_micros(row.number(12));
    record.endpoints.agent.host = row.text(13);
    record.endpoints.agent.port = static_cast<std::uint16_t>(row.number(14));
    record.agent_token = row.text(15);
    if (!row.is_null(16)) record.renew_seconds = row.number(16);
    return record;
}

}  // namespace

struct SandboxStore::State {
    std::mutex mutex;
    Database database;
    Statement insert_sandbox, insert_key, set_running, set_status, set_expiry, set_metadata, remove,
        remove_keys_of, remove_keys_before;

    Status prepare() {
        struct Wanted {
            Statement* statement;
            std::string sql;
        };
        const Wanted wanted[] = {
            {&insert_sandbox, "INSERT INTO sandboxes (" + std::string(kColumns) +
                                  ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"},
            {&insert_key, "INSERT OR REPLACE INTO idempotency_keys VALUES (?,?,?,?)"},
            {&set_running,
             "UPDATE sandboxes SET state=?2, reason=?3, message=?4, transition_at=?5, "
             "agent_host=?6, "
             "agent_port=?7 WHERE id=?1"},
            {&set_status,
             "UPDATE sandboxes SET state=?2, reason=?3, message=?4, transition_at=?5 WHERE id=?1"},
            {&set_expiry, "UPDATE sandboxes SET expires_at=?2 WHERE id=?1"},
            {&set_metadata, "UPDATE sandboxes SET metadata=?2 WHERE id=?1"},
            {&remove, "DELETE FROM sandboxes WHERE id=?1"},
            {&remove_keys_of, "DELETE FROM idempotency_keys WHERE sandbox_id=?1"},
            {&remove_keys_before, "DELETE FROM idempotency_keys WHERE created_at < ?1"},
        };
        for (const Wanted& entry : wanted) {
            auto prepared = database.prepare(entry.sql);
            if (!prepared) return prepared.error();
            *entry.statement = std::move(prepared.value());
        }
        return {};
    }
};

SandboxStore::SandboxStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
SandboxStore::~SandboxStore() = default;

Result<std::unique_ptr<SandboxStore>> SandboxStore::open(const std::filesystem::path& file) {
    auto database = Database::open(file);
    if (!database) return database.error();
    if (auto migrated = migrate(*database); !migrated) return migrated.error();
    auto state = std::make_unique<State>();
    state->database = std::move(database.value());
    if (auto prepared = state->prepare(); !prepared) return prepared.error();
    return std::unique_ptr<SandboxStore>(new SandboxStore(std::move(state)));
}

Result<std::vector<SandboxRecord>> SandboxStore::load_sandboxes() {
    std::lock_guard lock(state_->mutex);
    auto select = state_->database.prepare("SELECT " + std::string(kColumns) + " FROM sandboxes");
    if (!select) return select.error();
    std::vector<SandboxRecord> records;
    while (true) {
        auto more = select->step();
        if (!more) return more.error();
        if (!more.value()) return records;
        auto record = read_record(*select);
        if (!record) return record.error();
        records.push_back(std::move(record.value()));
    }
}

Result<std::vector<KeyRecord>> SandboxStore::load_keys() {
    std::lock_guard lock(state_->mutex);
    auto select = state_->database.prepare(
        "SELECT key, body_digest, sandbox_id, created_at FROM idempotency_keys");
    if (!select) return select.error();
    std::vector<KeyRecord> keys;
    while (true) {
        auto more = select->step();
        if (!more) return more.error();
        if (!more.value()) return keys;
        keys.emplace_back(select->text(0), select->text(1), select->text(2),
                          from_micros(select->number(3)));
    }
}

Status SandboxStore::insert(const SandboxRecord& record, const std::optional<KeyRecord>& key) {
    std::lock_guard lock(state_->mutex);
    if (!key) {
        bind_record(state_->insert_sandbox, record);
        return state_->insert_sandbox.run();
    }
    auto transaction = Transaction::begin(state_->database);
    if (!transaction) return transaction.error();
    bind_record(state_->insert_sandbox, record);
    if (auto inserted = state_->insert_sandbox.run(); !inserted) return inserted;
    Statement& insert = state_->insert_key;
    insert.bind(1, key->key);
    insert.bind(2, key->body_digest);
    insert.bind(3, key->sandbox_id);
    insert.bind(4, micros(key->created_at));
    if (auto inserted = insert.run(); !inserted) return inserted;
    return transaction->commit();
}

Status SandboxStore::set_running(const SandboxRecord& record) {
    std::lock_guard lock(state_->mutex);
    Statement& update = state_->set_running;
    const model::SandboxStatus& status = record.sandbox.status;
    update.bind(1, record.sandbox.id);
    update.bind(2, model::to_string(status.state));
    update.bind(3, status.reason);
    update.bind(4, status.message);
    update.bind(5, micros(status.last_transition_at));
    update.bind(6, record.endpoints.agent.host);
    update.bind(7, static_cast<std::int64_t>(record.endpoints.agent.port));
    return update.run();
}

Status SandboxStore::set_status(const std::string& id, const model::SandboxStatus& status) {
    std::lock_guard lock(state_->mutex);
    Statement& update = state_->set_status;
    update.bind(1, id);
    update.bind(2, model::to_string(status.state));
    update.bind(3, status.reason);
    update.bind(4, status.message);
    update.bind(5, micros(status.last_transition_at));
    return update.run();
}

Status SandboxStore::set_expiry(const std::string& id, std::optional<Timestamp> expires_at) {
    std::lock_guard lock(state_->mutex);
    Statement& update = state_->set_expiry;
    update.bind(1, id);
    update.bind(2, micros(expires_at));
    return update.run();
}

Status SandboxStore::set_metadata(const std::string& id, const model::StringMap& metadata) {
    std::lock_guard lock(state_->mutex);
    Statement& update = state_->set_metadata;
    update.bind(1, id);
    update.bind(2, map_to_json(metadata));
    return update.run();
}

Status SandboxStore::remove(const std::string& id) {
    std::lock_guard lock(state_->mutex);
    state_->remove.bind(1, id);
    return state_->remove.run();
}

Status SandboxStore::undo_insert(const std::string& id) {
    std::lock_guard lock(state_->mutex);
    auto transaction = Transaction::begin(state_->database);
    if (!transaction) return transaction.error();
    state_->remove_keys_of.bind(1, id);
    if (auto removed = state_->remove_keys_of.run(); !removed) return removed;
    state_->remove.bind(1, id);
    if (auto removed = state_->remove.run(); !removed) return removed;
    return transaction->commit();
}

Status SandboxStore::remove_keys_before(Timestamp limit) {
    std::lock_guard lock(state_->mutex);
    state_->remove_keys_before.bind(1, micros(limit));
    return state_->remove_keys_before.run();
}

}  // namespace opensandbox::store
