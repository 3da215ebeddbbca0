#include "store/pool_store.hpp"

#include "store/rows.hpp"

namespace opensandbox::store {
namespace {

constexpr const char* kPoolColumns =
    "tenant, name, buffer_min, buffer_max, pool_min, pool_max, revision, template, created_at";

void bind_capacity(Statement& statement, const model::Pool& pool) {
    statement.bind(3, pool.capacity.buffer_min);
    statement.bind(4, pool.capacity.buffer_max);
    statement.bind(5, pool.capacity.pool_min);
    statement.bind(6, pool.capacity.pool_max);
    statement.bind(7, pool.revision);
}

PoolRecord read_pool(const Statement& row) {
    PoolRecord record;
    record.tenant = row.text(0);
    record.pool.name = row.text(1);
    record.pool.capacity =
        model::PoolCapacity(row.number(2), row.number(3), row.number(4), row.number(5));
    record.pool.revision = row.number(6);
    record.pool.template_json = row.text(7);
    record.pool.created_at = from_micros(row.number(8));
    return record;
}

}  // namespace

Result<std::unique_ptr<PoolStore>> PoolStore::open(std::shared_ptr<Connection> connection) {
    std::unique_ptr<PoolStore> store(new PoolStore(connection));
    Database& database = connection->database();
    auto insert = database.prepare("INSERT INTO pools (" + std::string(kPoolColumns) +
                                   ") VALUES (?,?,?,?,?,?,?,?,?)");
    if (!insert) return insert.error();
    auto set_capacity = database.prepare(
        "UPDATE pools SET buffer_min=?3, buffer_max=?4, pool_min=?5, pool_max=?6, revision=?7 "
        "WHERE tenant=?1 AND name=?2");
    if (!set_capacity) return set_capacity.error();
    auto remove = database.prepare("DELETE FROM pools WHERE tenant=?1 AND name=?2");
    if (!remove) return remove.error();
    store->insert_ = std::move(insert.value());
    store->set_capacity_ = std::move(set_capacity.value());
    store->remove_ = std::move(remove.value());
    return store;
}

Result<std::vector<PoolRecord>> PoolStore::load() {
    auto lease = connection_->lease();
    if (!lease) return lease.error();
    auto select = (*lease)->prepare("SELECT " + std::string(kPoolColumns) + " FROM pools");
    if (!select) return select.error();
    std::vector<PoolRecord> records;
    while (true) {
        auto more = select->step();
        if (!more) return more.error();
        if (!more.value()) return records;
        records.push_back(read_pool(*select));
    }
}

Status PoolStore::insert(const PoolRecord& record) {
    auto lease = connection_->lease();
    if (!lease) return lease.error();
    insert_.bind(1, record.tenant);
    insert_.bind(2, record.pool.name);
    bind_capacity(insert_, record.pool);
    insert_.bind(8, record.pool.template_json);
    insert_.bind(9, micros(record.pool.created_at));
    return insert_.run();
}

Status PoolStore::set_capacity(const PoolRecord& record) {
    auto lease = connection_->lease();
    if (!lease) return lease.error();
    set_capacity_.bind(1, record.tenant);
    set_capacity_.bind(2, record.pool.name);
    bind_capacity(set_capacity_, record.pool);
    return set_capacity_.run();
}

Status PoolStore::remove(const std::string& tenant, const std::string& name) {
    auto lease = connection_->lease();
    if (!lease) return lease.error();
    remove_.bind(1, tenant);
    remove_.bind(2, name);
    return remove_.run();
}

}  // namespace opensandbox::store
