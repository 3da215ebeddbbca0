#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/host/fork_plan.hpp"
#include "lifecycle/host/host_lifecycle.hpp"
#include "lifecycle/start_failure.hpp"
#include "lifecycle/transition.hpp"

/// Copies of a sandbox: all of them or none.
namespace opensandbox::lifecycle {

/// Copies on their way.
struct HostLifecycle::Litter {
    explicit Litter(asio::any_io_executor executor) : settled(std::move(executor)) {}
    std::vector<Admitted> children;
    std::vector<QuotaLedger::Hold> claims;
    std::vector<KeyedMutex::Guard> turns;
    std::vector<Result<runtime::Endpoints>> outcomes;  ///< of each child
    std::size_t left = 0;                              ///< without an outcome
    net::Latch settled;

    [[nodiscard]] std::vector<std::string> ids() const {
        std::vector<std::string> all;
        for (const Admitted& child : children)
            all.push_back(child.record.sandbox.id);
        return all;
    }
    [[nodiscard]] std::vector<store::SandboxRecord> rows() const {
        std::vector<store::SandboxRecord> all;
        for (const Admitted& child : children)
            all.push_back(child.record);
        return all;
    }
};

Status HostLifecycle::check_forkable(const std::string& id) const {
    const auto* entry = index_.find(id);
    if (!entry) return not_found(id);
    if (!runtime_.capabilities().forks) {
        return Error(ErrorCode::unsupported, "SANDBOX::API_NOT_SUPPORTED",
                     "Forking is not supported by the runtime of this server.");
    }
    auto state = entry->record.sandbox.status.state;
    if (state == model::SandboxState::running || state == model::SandboxState::paused) return {};
    return Error(ErrorCode::conflict, error_code("SANDBOX_NOT_RUNNING"),
                 "Sandbox " + id + " is " + std::string(model::to_string(state)) +
                     ", neither Running nor Paused.");
}

Awaitable<Result<std::vector<std::string>>> HostLifecycle::fork(std::string id,
                                                                model::ForkRequest request,
                                                                Requester requester) {
    using Made = Result<std::vector<std::string>>;
    if (auto able = check_forkable(id); !able) co_return Made(able.error());
    const std::string fork_id = new_uuid();
    auto planned = plan_fork(index_.find(id)->record, request, rules_, fork_id, now());
    if (!planned) co_return Made(planned.error());
    auto litter = std::make_shared<Litter>(executor_);
    litter->children = std::move(planned.value());
    for (const Admitted& child : litter->children) {
        auto claim = quotas_.claim(child.record, requester.quota, index_);
        if (!claim) co_return Made(claim.error());
        litter->claims.push_back(std::move(claim.value()));
    }
    ++busy_;
    ScopeExit leave([this] { --busy_; });
    auto base = co_await keep_for_copies(id, fork_id);
    if (!base) co_return Made(base.error());
    for (Admitted& child : litter->children)
        child.spec.snapshot = base.value();
    auto done = co_await bring_up_all(litter);
    // Whatever was made stands on it and keeps it.
    auto let_go = co_await runtime_.remove_snapshot(std::move(base.value()));
    if (!let_go) {
        log::error("cannot let go of what copies stand on",
                   {{"sandbox", id}, {"error", let_go.error().message()}});
    }
    if (!done) {
        log::warn("fork failed", {{"sandbox", id}, {"error", done.error().message()}});
        co_return Made(done.error());
    }
    log::info("sandbox forked", {{"sandbox", id}, {"copies", litter->children.size()}});
    std::vector<std::string> items;
    for (const Admitted& child : litter->children)
        items.push_back(model::to_json(child.record.sandbox));
    co_return Made(std::move(items));
}

/// The source stays as it is meanwhile.
Awaitable<Result<runtime::SnapshotReference>> HostLifecycle::keep_for_copies(std::string id,
                                                                             std::string fork_id) {
    using Kept = Result<runtime::SnapshotReference>;
    auto hold = co_await holds_.lock(id);
    if (auto able = check_forkable(id); !able) co_return Kept(able.error());
    auto kept = co_await runtime_.fork(id, std::move(fork_id));
    if (kept) co_return kept;
    Error error = kept.error();
    if (!error.wire().empty() || error.code() == ErrorCode::conflict) co_return Kept(error);
    co_return Kept(Error(ErrorCode::internal, error_code("SANDBOX_START_FAILED"),
                         "copy of sandbox " + id + ": " + error.message()));
}

/// Rows, sandboxes, rows: a server that dies in between finds rows of sandboxes that never ran, and
/// removes them all.
Awaitable<Status> HostLifecycle::bring_up_all(std::shared_ptr<Litter> litter) {
    for (const std::string& id : litter->ids())
        litter->turns.push_back(co_await turns_.lock(id));
    Change insert = [rows = litter->rows()](store::SandboxStore& store) {
        return store.insert_all(rows);
    };
    auto inserted = co_await commit(std::move(insert));
    if (!inserted) {
        co_return inserted.error()
            .within("rows of the sandboxes")
            .as(error_code("SANDBOX_START_FAILED"));
    }
    for (const Admitted& child : litter->children)
        index_.put(child.record);
    litter->claims.clear();
    litter->left = litter->children.size();
    litter->outcomes.assign(litter->left, Error());
    for (std::size_t i = 0; i < litter->children.size(); ++i)
        spawn(bring_up_one(litter, i), "start a copy");
    co_await litter->settled.wait();
    auto done = co_await settle_all(*litter);
    if (!done) co_await undo_all(*litter);
    litter->turns.clear();
    co_return done;
}

Awaitable<void> HostLifecycle::bring_up_one(std::shared_ptr<Litter> litter, std::size_t which) {
    litter->outcomes[which] = co_await runtime_.create(std::move(litter->children[which].spec));
    if (--litter->left == 0) litter->settled.open();
}

/// All run, in one step.
Awaitable<Status> HostLifecycle::settle_all(Litter& litter) {
    for (std::size_t i = 0; i < litter.children.size(); ++i) {
        if (!litter.outcomes[i]) {
            const Error why = litter.outcomes[i].error().within(
                "copy " + std::to_string(i + 1) + " of " + std::to_string(litter.children.size()));
            co_return start_failure(why, error_code("SANDBOX_START_FAILED"));
        }
        store::SandboxRecord& record = litter.children[i].record;
        record.endpoints = litter.outcomes[i].value();
        record.sandbox.interception_mode = runtime_.interception_mode(record.sandbox.id);
        record.sandbox.status = running(now());
    }
    Change change = [rows = litter.rows()](store::SandboxStore& store) {
        return store.set_all_running(rows);
    };
    auto committed = co_await commit(std::move(change));
    if (!committed) {
        co_return committed.error()
            .within("rows of the sandboxes")
            .as(error_code("SANDBOX_START_FAILED"));
    }
    for (const Admitted& child : litter.children) {
        index_.put(child.record);
        const auto& expires_at = child.record.sandbox.expires_at;
        if (expires_at) expiry_.set(child.record.sandbox.id, *expires_at);
    }
    wake_.notify();
    co_return Status();
}

/// When the runtime or the store fails, too, the next start does it.
Awaitable<void> HostLifecycle::undo_all(Litter& litter) {
    for (std::size_t i = 0; i < litter.children.size(); ++i) {
        if (!litter.outcomes[i]) continue;
        const std::string& id = litter.children[i].record.sandbox.id;
        auto destroyed = co_await runtime_.destroy(id);
        if (!destroyed) {
            log::error("cannot undo a fork",
                       {{"sandbox", id}, {"error", destroyed.error().message()}});
        }
    }
    for (const std::string& id : litter.ids())
        index_.erase(id);
    Change change = [ids = litter.ids()](store::SandboxStore& store) {
        return store.undo_inserts(ids);
    };
    auto undone = co_await commit(std::move(change));
    if (!undone) log::error("cannot undo rows", {{"error", undone.error().message()}});
}

}  // namespace opensandbox::lifecycle
