#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/host/host_lifecycle.hpp"
#include "lifecycle/transition.hpp"
#include "store/database.hpp"

namespace opensandbox::lifecycle {
namespace {

/// An expiry that failed is tried again after this time (lifecycle 2.4).
constexpr std::chrono::seconds kRetry{30};
/// The sweep looks at the clock at least this often, so that a clock set forward is noticed.
constexpr std::chrono::seconds kLongestWait{60};
constexpr std::chrono::hours kKeySweep{1};
/// Rows that could not be removed are tried again after this time.
constexpr std::chrono::seconds kLateRows{1};

}  // namespace

/// One removal in flight and what became of it, for all who asked.
struct HostLifecycle::Removal {
    explicit Removal(asio::any_io_executor executor) : done(std::move(executor)) {}
    net::Latch done;
    Status status;
    bool skipped = false;  ///< an expiry that found itself renewed
};

Awaitable<Status> HostLifecycle::remove(std::string id) {
    while (true) {
        bool skipped = false;
        auto status = co_await remove_once(id, false, skipped);
        // It joined an expiry that was called off.
        if (!skipped) co_return status;
    }
}

Awaitable<Status> HostLifecycle::remove_once(std::string id, bool only_if_due, bool& skipped) {
    if (auto at = removals_.find(id); at != removals_.end()) {
        auto running = at->second;
        co_await running->done.wait();
        skipped = running->skipped;
        co_return running->status;
    }
    auto removal = std::make_shared<Removal>(executor_);
    removals_.emplace(id, removal);
    ++busy_;
    ScopeExit end([&] {
        --busy_;
        removals_.erase(id);
        removal->done.open();
    });
    auto status = co_await remove_locked(id, only_if_due, removal->skipped);
    removal->status = status;
    skipped = removal->skipped;
    co_return status;
}

Awaitable<Status> HostLifecycle::remove_locked(std::string id, bool only_if_due, bool& skipped) {
    auto hold = co_await holds_.lock(id);
    auto turn = co_await turns_.lock(id);
    const auto* entry = index_.find(id);
    if (!entry) co_return not_found(id);
    const auto& expires_at = entry->record.sandbox.expires_at;
    if (only_if_due && (!expires_at || *expires_at > now())) {
        if (expires_at) expiry_.set(id, *expires_at);
        skipped = true;
        co_return Status();
    }
    // Written first: a removal cut short is finished at the next start.
    model::SandboxStatus before = entry->record.sandbox.status;
    model::SandboxStatus stopping = deleting(now());
    Change mark = [id, stopping](store::SandboxStore& store) {
        return store.set_status(id, stopping);
    };
    auto marked = co_await commit(std::move(mark));
    if (!marked) {
        // A full disk is no reason to keep what fills it.
        if (!store::is_disk_full(marked.error())) {
            co_return marked.error().as(error_code("SANDBOX_DELETE_FAILED"));
        }
        log::warn("removal is not written down",
                  {{"sandbox", id}, {"reason", marked.error().message()}});
    }
    index_.update(id, [&](store::SandboxRecord& record) { record.sandbox.status = stopping; });

    auto destroyed = co_await runtime_.destroy(id);
    if (!destroyed) {
        log::error("delete failed", {{"sandbox", id}, {"error", destroyed.error().message()}});
        Change restore = [id, before](store::SandboxStore& store) {
            return store.set_status(id, before);
        };
        auto restored = co_await commit(std::move(restore));
        if (restored) {
            index_.update(id,
                          [&](store::SandboxRecord& record) { record.sandbox.status = before; });
        }
        co_return Error(ErrorCode::internal, error_code("SANDBOX_DELETE_FAILED"),
                        "Sandbox " + id + ": " + destroyed.error().message());
    }
    Change drop = [id](store::SandboxStore& store) { return store.remove(id); };
    auto dropped = co_await commit(std::move(drop));
    if (!dropped) {
        if (!store::is_disk_full(dropped.error())) {
            co_return dropped.error().as(error_code("SANDBOX_DELETE_FAILED"));
        }
        // The sandbox is gone; its row follows when the store takes writes again.
        log::warn("row of a removed sandbox stays for now",
                  {{"sandbox", id}, {"reason", dropped.error().message()}});
        late_rows_.insert(id);
        wake_.notify();
    }
    entry = index_.find(id);
    if (!entry) co_return Status();
    HostPools::Key pool(entry->record.tenant, entry->record.sandbox.pool);
    index_.erase(id);
    expiry_.erase(id);
    if (!pool.second.empty()) pools_.count_allocated(pool, -1);
    log::info("sandbox removed", {{"sandbox", id}, {"expired", only_if_due}});
    co_return Status();
}

Awaitable<void> HostLifecycle::expire(std::string id) {
    bool skipped = false;
    auto status = co_await remove_once(id, true, skipped);
    if (status || status.error().code() == ErrorCode::not_found) co_return;
    expiry_.set(id, now() + kRetry);
    wake_.notify();
}

Awaitable<void> HostLifecycle::run_expiry() {
    auto keys_due = now() + kKeySweep;
    while (!stopping_) {
        auto wait = std::chrono::nanoseconds(kLongestWait);
        if (auto next = expiry_.next()) {
            wait = std::min(wait, std::chrono::nanoseconds(*next - now()));
        }
        if (!late_rows_.empty()) wait = std::min(wait, std::chrono::nanoseconds(kLateRows));
        if (wait.count() > 0) co_await wake_.wait_for(wait);
        if (stopping_) co_return;
        co_await drop_late_rows();
        for (const std::string& id : expiry_.take_due(now()))
            spawn(expire(id), "expire a sandbox");
        if (now() >= keys_due) {
            keys_due = now() + kKeySweep;
            co_await forget_old_keys();
        }
    }
}

/// Rows of sandboxes that were removed while the store took no writes.
Awaitable<void> HostLifecycle::drop_late_rows() {
    while (!late_rows_.empty()) {
        const std::string id = *late_rows_.begin();
        Change drop = [id](store::SandboxStore& store) { return store.remove(id); };
        auto dropped = co_await commit(std::move(drop));
        if (!dropped) co_return;
        late_rows_.erase(id);
    }
}

Awaitable<void> HostLifecycle::forget_old_keys() {
    Timestamp limit = now() - kKeyLifetime;
    if (!keys_.forget_before(limit)) co_return;
    Change change = [limit](store::SandboxStore& store) { return store.remove_keys_before(limit); };
    auto removed = co_await commit(std::move(change));
    if (!removed) log::warn("cannot forget old keys", {{"error", removed.error().message()}});
}

}  // namespace opensandbox::lifecycle
