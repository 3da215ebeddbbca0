#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/host/host_pools.hpp"
#include "lifecycle/pool_template.hpp"
#include "lifecycle/transition.hpp"

namespace opensandbox::lifecycle {
namespace {

/// After a refill that failed.
constexpr std::chrono::seconds kRefillRetry{5};

}  // namespace

Awaitable<Status> HostPools::load() {
    store::SandboxStore& store = store_;
    using Rows = Result<std::vector<store::PoolRecord>>;
    std::function<Rows()> work = [&store] { return store.pools().load(); };
    auto rows = co_await net::run_blocking<Rows>(blocking_, std::move(work));
    if (!rows) co_return rows.error();
    for (auto& row : rows.value()) {
        auto base = parse_template(row.pool.template_json);
        auto entry = std::make_shared<Entry>();
        if (base) {
            entry->base = std::move(base.value());
        } else {
            // One that an earlier program took; what it asks for and does not get must be known.
            entry->refused = base.error().within("pool " + row.pool.name);
            log::error("a pool's template is not accepted any more; it makes no sandboxes",
                       {{"pool", row.pool.name}, {"reason", base.error().message()}});
        }
        entry->record = std::move(row);
        pools_.emplace(Key(entry->record.tenant, entry->record.pool.name), entry);
    }
    co_return Status();
}

void HostPools::adopt(store::SandboxRecord record) {
    auto at = pools_.find(Key(record.tenant, record.sandbox.pool));
    const bool usable = at != pools_.end() && !at->second->refused;
    if (!usable || !runtime_.capabilities().pools) return discard(record.sandbox.id);
    at->second->idle.push_back(std::move(record));
}

void HostPools::discard(const std::string& id) {
    spawn_(destroy(id), "destroy an idle sandbox");
}

void HostPools::start() {
    started_ = true;
    for (const auto& [key, entry] : pools_)
        reconcile(entry);
}

Result<Admitted> HostPools::admit_idle(const model::CreateRequest& base,
                                       const std::string& tenant) const {
    FindSnapshot source = [&](const std::string& id) { return snapshots_.source(id, tenant); };
    return admit(base, rules_, now(), source);
}

void HostPools::reconcile(const EntryPtr& entry) {
    if (!started_ || stopping_ || entry->waiting || !is_current(entry)) return;
    if (entry->refused) return;
    if (!runtime_.capabilities().pools) return;
    PoolStep step = plan_pool(entry->record.pool.capacity, entry->counts());
    for (std::int64_t i = 0; i < step.make; ++i) {
        ++entry->making;
        ++busy_;
        spawn_(make_idle(entry), "refill a pool");
    }
    for (std::int64_t i = 0; i < step.remove; ++i) {
        std::string id = entry->idle.back().sandbox.id;
        entry->idle.pop_back();
        discard(id);
    }
}

Awaitable<void> HostPools::make_idle(EntryPtr entry) {
    ScopeExit idle([this] { --busy_; });
    auto permit = co_await permits_.acquire();
    if (stopping_ || !is_current(entry) || entry->waiting) {
        --entry->making;
        co_return;
    }
    auto record = co_await made(entry);
    --entry->making;
    if (!record) {
        log::warn("cannot refill a pool",
                  {{"pool", entry->record.pool.name}, {"error", record.error().message()}});
        if (!entry->waiting) spawn_(wait_and_reconcile(entry), "refill a pool later");
        entry->waiting = true;
        co_return;
    }
    if (!is_current(entry)) {
        discard(record->sandbox.id);
        co_return;
    }
    entry->idle.push_back(std::move(record.value()));
    reconcile(entry);
}

Awaitable<void> HostPools::wait_and_reconcile(EntryPtr entry) {
    co_await net::sleep_for(kRefillRetry);
    entry->waiting = false;
    reconcile(entry);
}

/// From the row to a ready one; nothing is left on failure.
Awaitable<Result<store::SandboxRecord>> HostPools::made(EntryPtr entry) {
    auto admitted = admit_idle(entry->base, entry->record.tenant);
    if (!admitted) co_return admitted.error();
    store::SandboxRecord record = admitted->record;
    record.tenant = entry->record.tenant;
    admitted->spec.tenant = entry->record.tenant;
    record.sandbox.pool = entry->record.pool.name;
    record.pool_idle = true;
    const std::string id = record.sandbox.id;
    starting_.emplace(id, false);
    ScopeExit started([&] { starting_.erase(id); });
    Change insert = [record](store::SandboxStore& store) {
        return store.insert(record, std::nullopt);
    };
    auto inserted = co_await commit(std::move(insert));
    if (!inserted) co_return inserted.error();
    auto endpoints = co_await runtime_.create(std::move(admitted->spec));
    Status done;
    if (endpoints) {
        record.endpoints = std::move(endpoints.value());
        record.sandbox.status = running(now());
        Change update = [record](store::SandboxStore& store) { return store.set_running(record); };
        done = co_await commit(std::move(update));
    } else {
        done = endpoints.error();
    }
    if (done && starting_[id]) done = Error(ErrorCode::internal, "it ended at once");
    if (!done) {
        co_await destroy(id);
        co_return done.error();
    }
    co_return record;
}

/// When the store fails, too, the next start does it.
Awaitable<void> HostPools::destroy(std::string id) {
    ++busy_;
    ScopeExit idle([this] { --busy_; });
    auto destroyed = co_await runtime_.destroy(id);
    if (!destroyed) {
        log::error("cannot destroy an idle sandbox",
                   {{"sandbox", id}, {"error", destroyed.error().message()}});
        co_return;
    }
    Change drop = [id](store::SandboxStore& store) { return store.remove(id); };
    auto dropped = co_await commit(std::move(drop));
    if (!dropped) {
        log::error("cannot forget an idle sandbox",
                   {{"sandbox", id}, {"error", dropped.error().message()}});
    }
}

}  // namespace opensandbox::lifecycle
