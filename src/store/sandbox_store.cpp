#include "store/sandbox_store.hpp"

#include "store/rows.hpp"

namespace opensandbox::store {
namespace {

Status write_key(Statement& insert, const KeyRecord& key) {
    insert.bind(1, key.key);
    insert.bind(2, key.body_digest);
    insert.bind(3, key.sandbox_id);
    insert.bind(4, micros(key.created_at));
    return insert.run();
}

}  // namespace

struct SandboxStore::State {
    explicit State(std::shared_ptr<Connection> c) : connection(std::move(c)) {}

    // The statements go before the connection that they belong to.
    std::shared_ptr<Connection> connection;
    std::unique_ptr<SnapshotStore> snapshots;
    std::unique_ptr<PoolStore> pools;
    Statement insert_sandbox, replace_sandbox, insert_key, set_running, set_status, set_expiry,
        set_metadata, remove, remove_keys_of, remove_keys_before;

    Status prepare() {
        Database& database = connection->database();
        std::string row = sandbox_columns() + ") VALUES (" + sandbox_placeholders() + ")";
        struct Wanted {
            Statement* statement;
            std::string sql;
        };
        const Wanted wanted[] = {
            {&insert_sandbox, "INSERT INTO sandboxes (" + row},
            {&replace_sandbox, "INSERT OR REPLACE INTO sandboxes (" + row},
            {&insert_key, "INSERT OR REPLACE INTO idempotency_keys VALUES (?,?,?,?)"},
            {&set_running,
             "UPDATE sandboxes SET state=?2, reason=?3, message=?4, transition_at=?5, "
             "agent_host=?6, agent_port=?7, http_port=?8, internal_host=?9, host_network=?10, "
             "egress_token=?11, published=?12, egress_port=?13, "
             "image_digest=?14, interception_mode=?15 WHERE id=?1"},
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

    Status write(Database& database, Statement& insert, const SandboxRecord& record,
                 const std::optional<KeyRecord>& key) {
        bind_row(insert, record);
        if (!key) return insert.run();
        auto transaction = Transaction::begin(database);
        if (!transaction) return transaction.error();
        if (auto inserted = insert.run(); !inserted) return inserted;
        if (auto inserted = write_key(insert_key, *key); !inserted) return inserted;
        return transaction->commit();
    }

    Status write_running(const SandboxRecord& record);
    Status undo(const std::string& id);
};

SandboxStore::SandboxStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
SandboxStore::~SandboxStore() = default;

Result<std::unique_ptr<SandboxStore>> SandboxStore::open(const std::filesystem::path& file,
                                                         std::chrono::milliseconds patience) {
    auto opened = Connection::open(file, patience);
    if (!opened) return opened.error();
    auto state = std::make_unique<State>(std::shared_ptr<Connection>(std::move(opened.value())));
    if (auto prepared = state->prepare(); !prepared) return prepared.error();
    auto snapshots = SnapshotStore::open(state->connection);
    if (!snapshots) return snapshots.error();
    state->snapshots = std::move(snapshots.value());
    auto pools = PoolStore::open(state->connection);
    if (!pools) return pools.error();
    state->pools = std::move(pools.value());
    return std::unique_ptr<SandboxStore>(new SandboxStore(std::move(state)));
}

SnapshotStore& SandboxStore::snapshots() {
    return *state_->snapshots;
}
PoolStore& SandboxStore::pools() {
    return *state_->pools;
}

Result<std::vector<SandboxRecord>> SandboxStore::load_sandboxes() {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    auto select = (*lease)->prepare("SELECT " + sandbox_columns() + " FROM sandboxes");
    if (!select) return select.error();
    std::vector<SandboxRecord> records;
    while (true) {
        auto more = select->step();
        if (!more) return more.error();
        if (!more.value()) return records;
        auto record = read_row(*select);
        if (!record) return record.error();
        records.push_back(std::move(record.value()));
    }
}

Result<std::vector<KeyRecord>> SandboxStore::load_keys() {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    auto select =
        (*lease)->prepare("SELECT key, body_digest, sandbox_id, created_at FROM idempotency_keys");
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
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    return state_->write(**lease, state_->insert_sandbox, record, key);
}

Status SandboxStore::replace(const SandboxRecord& record, const std::optional<KeyRecord>& key) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    return state_->write(**lease, state_->replace_sandbox, record, key);
}

Status SandboxStore::insert_all(const std::vector<SandboxRecord>& records) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    auto transaction = Transaction::begin(**lease);
    if (!transaction) return transaction.error();
    for (const SandboxRecord& record : records) {
        bind_row(state_->insert_sandbox, record);
        if (auto inserted = state_->insert_sandbox.run(); !inserted) return inserted;
    }
    return transaction->commit();
}

Status SandboxStore::set_running(const SandboxRecord& record) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    return state_->write_running(record);
}

Status SandboxStore::set_all_running(const std::vector<SandboxRecord>& records) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    auto transaction = Transaction::begin(**lease);
    if (!transaction) return transaction.error();
    for (const SandboxRecord& record : records) {
        if (auto written = state_->write_running(record); !written) return written;
    }
    return transaction->commit();
}

Status SandboxStore::State::write_running(const SandboxRecord& record) {
    Statement& update = set_running;
    const model::SandboxStatus& status = record.sandbox.status;
    update.bind(1, record.sandbox.id);
    update.bind(2, model::to_string(status.state));
    update.bind(3, status.reason);
    update.bind(4, status.message);
    update.bind(5, micros(status.last_transition_at));
    update.bind(6, record.endpoints.agent.host);
    update.bind(7, static_cast<std::int64_t>(record.endpoints.agent.port));
    update.bind(8, static_cast<std::int64_t>(record.endpoints.http_port));
    update.bind(9, record.endpoints.internal_host);
    update.bind(10, static_cast<std::int64_t>(record.endpoints.host_network));
    update.bind(11, record.endpoints.egress_token);
    update.bind(12, ports_to_text(record.endpoints.published));
    update.bind(13, static_cast<std::int64_t>(record.endpoints.egress_port));
    update.bind(14, record.sandbox.image_digest);
    update.bind(15, record.sandbox.interception_mode);
    return update.run();
}

Status SandboxStore::set_status(const std::string& id, const model::SandboxStatus& status) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    Statement& update = state_->set_status;
    update.bind(1, id);
    update.bind(2, model::to_string(status.state));
    update.bind(3, status.reason);
    update.bind(4, status.message);
    update.bind(5, micros(status.last_transition_at));
    return update.run();
}

Status SandboxStore::set_expiry(const std::string& id, std::optional<Timestamp> expires_at) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    Statement& update = state_->set_expiry;
    update.bind(1, id);
    update.bind(2, micros(expires_at));
    return update.run();
}

Status SandboxStore::set_metadata(const std::string& id, const model::StringMap& metadata) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    Statement& update = state_->set_metadata;
    update.bind(1, id);
    update.bind(2, map_to_json(metadata));
    return update.run();
}

Status SandboxStore::remove(const std::string& id) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    state_->remove.bind(1, id);
    return state_->remove.run();
}

Status SandboxStore::State::undo(const std::string& id) {
    remove_keys_of.bind(1, id);
    if (auto removed = remove_keys_of.run(); !removed) return removed;
    remove.bind(1, id);
    return remove.run();
}

Status SandboxStore::undo_insert(const std::string& id) {
    return undo_inserts({id});
}

Status SandboxStore::undo_inserts(const std::vector<std::string>& ids) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    auto transaction = Transaction::begin(**lease);
    if (!transaction) return transaction.error();
    for (const std::string& id : ids) {
        if (auto undone = state_->undo(id); !undone) return undone;
    }
    return transaction->commit();
}

Status SandboxStore::remove_keys_before(Timestamp limit) {
    auto lease = state_->connection->lease();
    if (!lease) return lease.error();
    state_->remove_keys_before.bind(1, micros(limit));
    return state_->remove_keys_before.run();
}

}  // namespace opensandbox::store
