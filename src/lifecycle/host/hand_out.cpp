#include "base/log.hpp"
#include "lifecycle/admission_checks.hpp"
#include "lifecycle/host/host_lifecycle.hpp"
#include "lifecycle/pool_template.hpp"
#include "lifecycle/transition.hpp"

#include <algorithm>

/// Where sandboxes and pools meet: creates out of a pool, and idle ones at recovery.
namespace opensandbox::lifecycle {

/// The pool that a create comes out of: with a sandbox that is ready as it is wanted, else with
/// room for another. Errors are those of the first that does not suit.
Result<HostPools::Key> HostLifecycle::choose_pool(const model::CreateRequest& request,
                                                  const std::string& tenant) const {
    const std::string_view name = pool_of(request);
    if (name != kAnyPool) return HostPools::Key(tenant, name);
    std::optional<HostPools::Key> suits;
    std::optional<Error> why;
    for (const HostPools::Key& key : pools_.candidates(tenant)) {
        auto base = pools_.open(key);
        const auto merged = base ? apply_template(base.value(), request) : base;
        if (!merged) {
            if (!why) why = merged.error();
            continue;
        }
        if (pools_.has_idle(key) && fits_idle(base.value(), request)) return key;
        if (!suits) suits = key;
    }
    if (suits) return *suits;
    if (why) return *why;
    return Error(ErrorCode::not_found, "KUBERNETES::POOL_NOT_FOUND",
                 "extensions.poolRef: '*' means any pool, and there is none.");
}

/// An idle sandbox becomes what was admitted: its own id, token, address and program, the request's
/// all else. On failure it is idle again.
Awaitable<Status> HostLifecycle::hand_out(store::SandboxRecord idle, Admitted& admitted,
                                          std::optional<IdempotencyKey> key) {
    auto turn = co_await turns_.lock(idle.sandbox.id);
    store::SandboxRecord record = admitted.record;
    record.sandbox.id = idle.sandbox.id;
    record.sandbox.entrypoint = idle.sandbox.entrypoint;
    record.sandbox.status = running(now());
    record.endpoints = idle.endpoints;
    record.agent_token = idle.agent_token;
    Change replace = [record, key_record = key_row(key, record)](store::SandboxStore& store) {
        return store.replace(record, key_record);
    };
    auto replaced = co_await commit(std::move(replace));
    if (!replaced) {
        pools_.give_back(std::move(idle));
        co_return replaced.error()
            .within("row of the sandbox")
            .as(error_code("SANDBOX_START_FAILED"));
    }
    index_.put(record);
    if (record.sandbox.expires_at) {
        expiry_.set(record.sandbox.id, *record.sandbox.expires_at);
        wake_.notify();
    }
    admitted.record = std::move(record);
    co_return Status();
}

/// Takes idle sandboxes out of the plan: those that live wait in their pools again, what is left of
/// the others is removed.
Awaitable<Status> HostLifecycle::settle_idle(RecoveryPlan& plan, Rows idle) {
    for (const auto& object : plan.adopt) {
        auto at = idle.find(object.id);
        if (at == idle.end() || object.paused) continue;
        store::SandboxRecord record = std::move(at->second);
        idle.erase(at);
        if (!(record.endpoints == object.endpoints)) {
            record.endpoints = object.endpoints;
            Change change = [record](store::SandboxStore& s) { return s.set_running(record); };
            auto committed = co_await commit(std::move(change));
            if (!committed) co_return committed;
        }
        pools_.adopt(std::move(record));
    }
    for (const auto& [id, record] : idle)
        pools_.discard(id);
    std::erase_if(plan.adopt, [&](const auto& object) { return !index_.find(object.id); });
    std::erase_if(plan.ended, [&](const auto& ended) { return !index_.find(ended.first); });
    std::erase_if(plan.remove, [&](const auto& id) { return !index_.find(id); });
    co_return Status();
}

}  // namespace opensandbox::lifecycle
