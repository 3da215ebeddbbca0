#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/host/host_lifecycle.hpp"
#include "lifecycle/pool_template.hpp"
#include "lifecycle/start_failure.hpp"
#include "lifecycle/transition.hpp"

namespace opensandbox::lifecycle {

Awaitable<Result<HostLifecycle::Created>> HostLifecycle::create(model::CreateRequest request,
                                                                std::optional<IdempotencyKey> key,
                                                                Requester requester) {
    // Tenants do not see each other's keys.
    if (key && !requester.tenant.empty()) key->key = requester.tenant + " " + key->key;
    while (key) {
        auto verdict = keys_.decide(*key, now());
        if (verdict.error) co_return *verdict.error;
        if (!verdict.sandbox_id.empty()) co_return replay(verdict.sandbox_id, *key);
        if (!verdict.wait) break;
        auto flight = verdict.wait;
        co_await flight->wait();
    }
    if (key) keys_.begin(*key);
    std::optional<store::KeyRecord> record;
    ScopeExit finish([&] {
        if (key) keys_.finish(*key, record);
    });
    auto made = co_await make(std::move(request), key, std::move(requester));
    if (made && key) {
        const auto* entry = index_.find(made->id);
        Timestamp at = entry ? entry->record.sandbox.created_at : now();
        record.emplace(key->key, key->body_digest, made->id, at);
    }
    co_return made;
}

Result<HostLifecycle::Created> HostLifecycle::replay(const std::string& id,
                                                     const IdempotencyKey& key) const {
    const auto* entry = index_.find(id);
    if (!entry) {
        return Error(ErrorCode::conflict, "IDEMPOTENCY_KEY_SPENT",
                     "Idempotency-Key '" + key.key + "' made sandbox " + id +
                         ", which was removed since; use a new key.");
    }
    Created created;
    created.id = id;
    created.json = model::to_create_json(entry->record.sandbox);
    created.replayed = true;
    return created;
}

/// The gate of every create, with a pool or without.
Result<HostLifecycle::Entrant> HostLifecycle::let_in(const model::CreateRequest& request,
                                                     const std::string& tenant) const {
    Entrant entrant;
    model::CreateRequest wanted = request;
    if (!pool_of(request).empty() && runtime_.capabilities().pools) {
        auto pool = choose_pool(request, tenant);
        if (!pool) return pool.error();
        entrant.pool = std::move(pool.value());
        auto base = pools_.open(entrant.pool);
        if (!base) return base.error();
        auto merged = apply_template(base.value(), request);
        if (!merged) return merged.error();
        entrant.fits_idle = fits_idle(base.value(), request);
        wanted = std::move(merged.value());
    }
    FindSnapshot source = [&](const std::string& id) { return snapshots_.source(id, tenant); };
    auto admitted = admit(wanted, rules_, now(), source);
    if (!admitted) return admitted.error();
    entrant.admitted = std::move(admitted.value());
    entrant.admitted.record.tenant = tenant;
    entrant.admitted.spec.tenant = tenant;
    entrant.admitted.record.sandbox.pool = entrant.pool.second;
    return entrant;
}

Awaitable<Result<HostLifecycle::Created>> HostLifecycle::make(model::CreateRequest request,
                                                              std::optional<IdempotencyKey> key,
                                                              Requester requester) {
    auto entrant = let_in(request, requester.tenant);
    if (!entrant) co_return entrant.error();
    Admitted& admitted = entrant->admitted;
    auto claim = quotas_.claim(admitted.record, requester.quota, index_);
    if (!claim) co_return claim.error();
    ++busy_;
    ScopeExit leave([this] { --busy_; });

    for (const std::string& warning : admitted.warnings)
        log::warn("create", {{"sandbox", admitted.record.sandbox.id}, {"note", warning}});
    std::optional<store::SandboxRecord> idle;
    if (entrant->fits_idle) idle = pools_.take(entrant->pool);
    if (!entrant->pool.second.empty()) pools_.count_allocated(entrant->pool, 1);
    Status done;
    if (idle) {
        done = co_await hand_out(std::move(*idle), admitted, std::move(key));
    } else {
        done = co_await make_new(admitted, std::move(key), claim.value());
    }
    if (!done) {
        if (!entrant->pool.second.empty()) pools_.count_allocated(entrant->pool, -1);
        co_return done.error();
    }
    Created created;
    created.id = admitted.record.sandbox.id;
    created.json = model::to_create_json(admitted.record.sandbox);
    co_return created;
}

std::optional<store::KeyRecord> HostLifecycle::key_row(const std::optional<IdempotencyKey>& key,
                                                       const store::SandboxRecord& record) {
    if (!key) return std::nullopt;
    return store::KeyRecord(key->key, key->body_digest, record.sandbox.id,
                            record.sandbox.created_at);
}

/// From nothing: row, sandbox, row. On failure nothing is left.
Awaitable<Status> HostLifecycle::make_new(Admitted& admitted, std::optional<IdempotencyKey> key,
                                          QuotaLedger::Hold& claim) {
    std::string id = admitted.record.sandbox.id;
    auto turn = co_await turns_.lock(id);
    Change insert = [row = admitted.record, key_record = key_row(key, admitted.record)](
                        store::SandboxStore& store) { return store.insert(row, key_record); };
    auto inserted = co_await commit(std::move(insert));
    if (!inserted) {
        co_return inserted.error()
            .within("row of the sandbox")
            .as(error_code("SANDBOX_START_FAILED"));
    }
    index_.put(admitted.record);
    claim.release();

    auto up = co_await bring_up(admitted);
    if (up) co_return up;
    co_await undo(id);
    log::warn("create failed", {{"sandbox", id}, {"error", up.error().message()}});
    co_return up.error();
}

/// From the row to a running sandbox.
Awaitable<Status> HostLifecycle::bring_up(Admitted& admitted) {
    auto endpoints = co_await runtime_.create(std::move(admitted.spec));
    if (!endpoints) {
        co_return start_failure(endpoints.error(), error_code("SANDBOX_START_FAILED"));
    }
    store::SandboxRecord& record = admitted.record;
    record.endpoints = std::move(endpoints.value());
    if (record.sandbox.pool.empty()) {
        record.sandbox.image_digest = runtime_.image_digest(record.sandbox.id);
    }
    record.sandbox.interception_mode = runtime_.interception_mode(record.sandbox.id);
    record.sandbox.status = running(now());
    Change change = [record](store::SandboxStore& store) { return store.set_running(record); };
    auto committed = co_await commit(std::move(change));
    if (!committed) {
        auto destroyed = co_await runtime_.destroy(record.sandbox.id);
        if (!destroyed) {
            log::error("cannot undo a create",
                       {{"sandbox", record.sandbox.id}, {"error", destroyed.error().message()}});
        }
        co_return committed.error()
            .within("row of the sandbox")
            .as(error_code("SANDBOX_START_FAILED"));
    }
    index_.put(record);
    if (record.sandbox.expires_at) {
        expiry_.set(record.sandbox.id, *record.sandbox.expires_at);
        wake_.notify();
    }
    co_return Status();
}

/// Forgets a sandbox that never came to be. When the store fails, too, the next start does it.
Awaitable<void> HostLifecycle::undo(std::string id) {
    index_.erase(id);
    Change change = [id](store::SandboxStore& store) { return store.undo_insert(id); };
    auto undone = co_await commit(std::move(change));
    if (!undone)
        log::error("cannot undo a row", {{"sandbox", id}, {"error", undone.error().message()}});
}

}  // namespace opensandbox::lifecycle
