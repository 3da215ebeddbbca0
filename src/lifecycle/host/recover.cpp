#include "base/log.hpp"
#include "lifecycle/host/host_lifecycle.hpp"
#include "lifecycle/transition.hpp"

namespace opensandbox::lifecycle {

Awaitable<Status> HostLifecycle::start() {
    // Before the runtime speaks, so that no exit goes unheard.
    std::weak_ptr<HostLifecycle> weak = weak_from_this();
    runtime_.on_exit([weak](const std::string& id, const runtime::Exit& exit) {
        if (auto self = weak.lock()) self->spawn(self->handle_exit(id, exit), "record an exit");
    });
    runtime_.on_change([weak](const std::string& id, runtime::Change change) {
        if (auto self = weak.lock())
            self->spawn(self->handle_change(id, change), "record a change");
    });
    auto recovered = co_await recover();
    if (!recovered) co_return recovered;
    spawn(run_expiry(), "expiry");
    co_return Status();
}

Awaitable<Status> HostLifecycle::recover() {
    store::SandboxStore& store = store_;
    using Rows = Result<std::vector<store::SandboxRecord>>;
    std::function<Rows()> load = [&store] { return store.load_sandboxes(); };
    auto rows = co_await net::run_blocking<Rows>(blocking_, std::move(load));
    if (!rows) co_return rows.error();
    using Keys = Result<std::vector<store::KeyRecord>>;
    std::function<Keys()> load_keys = [&store] { return store.load_keys(); };
    auto keys = co_await net::run_blocking<Keys>(blocking_, std::move(load_keys));
    if (!keys) co_return keys.error();
    keys_.load(std::move(keys.value()));
    co_await forget_old_keys();
    auto pools = co_await pools_.load();
    if (!pools) co_return pools;
    std::map<std::string, store::SandboxRecord> idle;
    for (const auto& row : rows.value()) {
        if (row.pool_idle) {
            idle.emplace(row.sandbox.id, row);
        } else {
            index_.put(row);
        }
    }

    auto started = co_await runtime_.start();
    if (!started) co_return started.error().within("runtime");
    auto observed = co_await runtime_.list();
    if (!observed) co_return observed.error().within("runtime");

    RecoveryPlan plan =
        plan_recovery(rows.value(), observed.value(), now(), runtime_.host_restarted());
    // First, as what pools are made of may be one of them.
    auto snapshots = co_await snapshots_.recover();
    if (!snapshots) co_return snapshots;
    auto stocked = co_await settle_idle(plan, std::move(idle));
    if (!stocked) co_return stocked;
    auto settled = co_await settle(plan);
    if (!settled) co_return settled;
    index_.for_each([&](const store::SandboxRecord& record) {
        if (record.sandbox.expires_at) expiry_.set(record.sandbox.id, *record.sandbox.expires_at);
        HostPools::Key pool(record.tenant, record.sandbox.pool);
        if (!pool.second.empty()) pools_.count_allocated(pool, 1);
    });
    pools_.start();
    for (const std::string& id : plan.remove)
        spawn(remove_remains(id), "finish a removal");
    for (const std::string& id : plan.orphans)
        spawn(destroy_orphan(id), "destroy an orphan");
    if (!rows->empty() || !plan.orphans.empty() || !plan.adopt_new.empty()) {
        log::info("recovered", {{"adopted", plan.adopt.size()},
                                {"taken_over", plan.adopt_new.size()},
                                {"ended", plan.ended.size()},
                                {"removed", plan.remove.size()},
                                {"orphans", plan.orphans.size()}});
    }
    co_return Status();
}

/// Brings rows in line with what the runtime has.
Awaitable<Status> HostLifecycle::settle(RecoveryPlan plan) {
    for (const auto& [id, status] : plan.ended) {
        Change change = [id = id, status = status](store::SandboxStore& s) {
            return s.set_status(id, status);
        };
        auto committed = co_await commit(std::move(change));
        if (!committed) co_return committed;
        index_.update(id, [&](store::SandboxRecord& record) { record.sandbox.status = status; });
        log::warn("sandbox ended while no server ran",
                  {{"sandbox", id}, {"reason", status.reason}});
    }
    for (const auto& object : plan.adopt) {
        const auto* entry = index_.find(object.id);
        store::SandboxRecord record = entry->record;
        auto state = object.paused ? model::SandboxState::paused : model::SandboxState::running;
        bool known = record.sandbox.status.state == state;
        if (known && record.endpoints == object.endpoints) continue;
        record.endpoints = object.endpoints;
        if (!known) record.sandbox.status = object.paused ? paused(now()) : running(now());
        Change change = [record](store::SandboxStore& s) { return s.set_running(record); };
        auto committed = co_await commit(std::move(change));
        if (!committed) co_return committed;
        index_.put(record);
        // It may have been held for a snapshot only, and let go since it was listed.
        if (object.paused && !known) {
            spawn(handle_change(object.id, runtime::Change::paused), "look at a pause again");
        }
    }
    for (const auto& record : plan.adopt_new) {
        Change change = [record](store::SandboxStore& s) { return s.insert(record, std::nullopt); };
        auto committed = co_await commit(std::move(change));
        if (!committed) co_return committed;
        index_.put(record);
        log::info("sandbox of another server taken over", {{"sandbox", record.sandbox.id}});
    }
    co_return Status();
}

/// A row whose creation or removal was cut short.
Awaitable<void> HostLifecycle::remove_remains(std::string id) {
    auto removed = co_await remove(id);
    if (!removed)
        log::error("cannot remove remains",
                   {{"sandbox", id}, {"error", removed.error().message()}});
}

Awaitable<void> HostLifecycle::destroy_orphan(std::string id) {
    auto turn = co_await turns_.lock(id);
    auto destroyed = co_await runtime_.destroy(id);
    if (!destroyed) {
        log::error("cannot destroy an orphan",
                   {{"sandbox", id}, {"error", destroyed.error().message()}});
    }
}

Awaitable<void> HostLifecycle::handle_exit(std::string id, runtime::Exit exit) {
    auto turn = co_await turns_.lock(id);
    if (pools_.handle_exit(id)) co_return;
    const auto* entry = index_.find(id);
    if (!entry || !model::is_alive(entry->record.sandbox.status.state)) co_return;
    model::SandboxStatus status = exited(exit, now());
    Change change = [id, status](store::SandboxStore& store) {
        return store.set_status(id, status);
    };
    auto committed = co_await commit(std::move(change));
    if (!committed) {
        log::error("cannot record an exit",
                   {{"sandbox", id}, {"error", committed.error().message()}});
    }
    index_.update(id, [&](store::SandboxRecord& record) { record.sandbox.status = status; });
    log::info("sandbox ended",
              {{"sandbox", id}, {"reason", status.reason}, {"message", status.message}});
}

}  // namespace opensandbox::lifecycle
