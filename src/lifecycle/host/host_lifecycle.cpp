#include "lifecycle/host/host_lifecycle.hpp"

#include "base/log.hpp"

namespace opensandbox::lifecycle {

HostLifecycle::HostLifecycle(asio::any_io_executor executor, asio::thread_pool& blocking,
                             store::SandboxStore& store, runtime::Runtime& runtime,
                             AdmissionRules rules)
    : executor_(executor),
      blocking_(blocking),
      store_(store),
      runtime_(runtime),
      rules_(std::move(rules)),
      keys_(executor),
      turns_(executor),
      holds_(executor),
      snapshots_(
          executor, [this](Awaitable<void> task, auto name) { spawn(std::move(task), name); },
          blocking, store.snapshots(), runtime, index_, holds_),
      pools_(
          executor, [this](Awaitable<void> task, auto name) { spawn(std::move(task), name); },
          blocking, store, runtime, rules_, snapshots_),
      wake_(executor) {}

Awaitable<Status> HostLifecycle::commit(Change change) {
    store::SandboxStore& store = store_;
    std::function<Status()> work = [change = std::move(change), &store] { return change(store); };
    co_return co_await net::run_blocking<Status>(blocking_, std::move(work));
}

/// The task keeps this object alive until it ends.
void HostLifecycle::spawn(Awaitable<void> task, std::string_view name) {
    auto hold = [](std::shared_ptr<HostLifecycle> self, Awaitable<void> inner) -> Awaitable<void> {
        co_await std::move(inner);
        (void)self;
    };
    net::spawn(executor_, hold(shared_from_this(), std::move(task)), name);
}

Result<AgentAccess> HostLifecycle::agent(std::string_view id) const {
    const auto* entry = index_.find(id);
    if (!entry) return not_found(id);
    AgentAccess access;
    access.endpoints = entry->record.endpoints;
    access.token = entry->record.agent_token;
    access.tenant = entry->record.tenant;
    access.status = entry->record.sandbox.status;
    access.renew_seconds = entry->record.renew_seconds;
    return access;
}

Awaitable<Result<Timestamp>> HostLifecycle::renew(std::string id, Timestamp expires_at) {
    auto turn = co_await turns_.lock(id);
    if (auto may = check_renewal(id, expires_at); !may) co_return may.error();
    co_return co_await set_expiry(std::move(id), expires_at);
}

Awaitable<Result<Timestamp>> HostLifecycle::extend(std::string id, std::chrono::seconds by) {
    auto turn = co_await turns_.lock(id);
    if (auto may = check_extension(id); !may) co_return may.error();
    const Timestamp held = *index_.find(id)->record.sandbox.expires_at;
    const Timestamp wanted = now() + by;
    if (wanted <= held) co_return held;
    co_return co_await set_expiry(std::move(id), wanted);
}

/// Under the sandbox's turn.
Awaitable<Result<Timestamp>> HostLifecycle::set_expiry(std::string id, Timestamp expires_at) {
    Change change = [id, expires_at](store::SandboxStore& store) {
        return store.set_expiry(id, expires_at);
    };
    auto committed = co_await commit(std::move(change));
    if (!committed) co_return committed.error();
    index_.update(id,
                  [&](store::SandboxRecord& record) { record.sandbox.expires_at = expires_at; });
    expiry_.set(id, expires_at);
    wake_.notify();
    co_return expires_at;
}

Awaitable<Result<std::string>> HostLifecycle::patch_metadata(std::string id,
                                                             model::MetadataPatch patch) {
    auto turn = co_await turns_.lock(id);
    const auto* entry = index_.find(id);
    if (!entry) co_return not_found(id);
    auto merged = model::apply(patch, entry->record.sandbox.metadata.value_or(model::StringMap()));
    if (!merged) co_return merged.error();
    Change change = [id, metadata = merged.value()](store::SandboxStore& store) {
        return store.set_metadata(id, metadata);
    };
    auto committed = co_await commit(std::move(change));
    if (!committed) co_return committed.error();
    index_.update(id, [&](store::SandboxRecord& record) {
        record.sandbox.metadata = std::move(merged.value());
    });
    const auto* patched = index_.find(id);
    if (!patched) co_return not_found(id);
    co_return patched->json;
}

Awaitable<void> HostLifecycle::stop(std::chrono::milliseconds grace) {
    stopping_ = true;
    snapshots_.stop();
    pools_.stop();
    wake_.notify();
    constexpr std::chrono::milliseconds kStep(5);
    auto deadline = std::chrono::steady_clock::now() + grace;
    auto busy = [this] { return busy_ > 0 || snapshots_.busy() > 0 || pools_.busy() > 0; };
    while (busy() && std::chrono::steady_clock::now() < deadline)
        co_await net::sleep_for(kStep);
    if (busy()) log::warn("stopped with changes in flight; they are settled at the next start");
}

}  // namespace opensandbox::lifecycle
