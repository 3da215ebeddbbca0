#include "store/snapshot_store.hpp"

#include "store/rows.hpp"

namespace opensandbox::store {
namespace {

constexpr const char* kSnapshotColumns =
    "id, sandbox_id, name, tenant, base_image, state, reason, message, transition_at, created_at, "
    "reference";

Result<SnapshotRecord> read_snapshot(const Statement& row) {
    SnapshotRecord record;
    model::Snapshot& snapshot = record.snapshot;
    snapshot.id = row.text(0);
    snapshot.sandbox_id = row.text(1);
    if (!row.is_null(2)) snapshot.name = row.text(2);
    record.tenant = row.text(3);
    record.base_image = row.text(4);
    auto state = model::parse_snapshot_state(row.text(5));
    if (!state) {
        return Error(ErrorCode::io, "store: snapshot " + snapshot.id + ": unreadable column state");
    }
    snapshot.status =
        model::SnapshotStatus(*state, row.text(6), row.text(7), from_micros(row.number(8)));
    snapshot.created_at = from_micros(row.number(9));
    record.reference = row.text(10);
    return record;
}

}  // namespace

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open(std::shared_ptr<Connection> connection) {
    std::unique_ptr<SnapshotStore> store(new SnapshotStore(connection));
    Database& database = connection->database();
    auto insert = database.prepare("INSERT INTO snapshots (" + std::string(kSnapshotColumns) +
                                   ") VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    if (!insert) return insert.error();
    auto set_status = database.prepare(
        "UPDATE snapshots SET state=?2, reason=?3, message=?4, transition_at=?5, reference=?6 "
        "WHERE id=?1");
    if (!set_status) return set_status.error();
    auto remove = database.prepare("DELETE FROM snapshots WHERE id=?1");
    if (!remove) return remove.error();
    store->insert_ = std::move(insert.value());
    store->set_status_ = std::move(set_status.value());
    store->remove_ = std::move(remove.value());
    return store;
}

Result<std::vector<SnapshotRecord>> SnapshotStore::load() {
    auto lease = connection_->lease();
    if (!lease) return lease.error();
    auto select = (*lease)->prepare("SELECT " + std::string(kSnapshotColumns) + " FROM snapshots");
    if (!select) return select.error();
    std::vector<SnapshotRecord> records;
    while (true) {
        auto more = select->step();
        if (!more) return more.error();
        if (!more.value()) return records;
        auto record = read_snapshot(*select);
        if (!record) return record.error();
        records.push_back(std::move(record.value()));
    }
}

Status SnapshotStore::insert(const SnapshotRecord& record) {
    auto lease = connection_->lease();
    if (!lease) return lease.error();
    const model::Snapshot& snapshot = record.snapshot;
    insert_.bind(1, snapshot.id);
    insert_.bind(2, snapshot.sandbox_id);
    if (snapshot.name) {
        insert_.bind(3, *snapshot.name);
    } else {
        insert_.bind_null(3);
    }
    insert_.bind(4, record.tenant);
    insert_.bind(5, record.base_image);
    insert_.bind(6, model::to_string(snapshot.status.state));
    insert_.bind(7, snapshot.status.reason);
    insert_.bind(8, snapshot.status.message);
    insert_.bind(9, micros(snapshot.status.last_transition_at));
    insert_.bind(10, micros(snapshot.created_at));
    insert_.bind(11, record.reference);
    return insert_.run();
}

Status SnapshotStore::set_status(const SnapshotRecord& record) {
    auto lease = connection_->lease();
    if (!lease) return lease.error();
    const model::SnapshotStatus& status = record.snapshot.status;
    set_status_.bind(1, record.snapshot.id);
    set_status_.bind(2, model::to_string(status.state));
    set_status_.bind(3, status.reason);
    set_status_.bind(4, status.message);
    set_status_.bind(5, micros(status.last_transition_at));
    set_status_.bind(6, record.reference);
    return set_status_.run();
}

Status SnapshotStore::remove(const std::string& id) {
    auto lease = connection_->lease();
    if (!lease) return lease.error();
    remove_.bind(1, id);
    return remove_.run();
}

}  // namespace opensandbox::store
