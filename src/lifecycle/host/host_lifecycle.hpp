#pragma once

#include "lifecycle/admission.hpp"
#include "lifecycle/host/expiry_queue.hpp"
#include "lifecycle/host/host_pools.hpp"
#include "lifecycle/host/host_snapshots.hpp"
#include "lifecycle/host/keyed_mutex.hpp"
#include "lifecycle/host/recovery_plan.hpp"
#include "lifecycle/lifecycle.hpp"
#include "lifecycle/quota_ledger.hpp"
#include "net/task.hpp"

#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace opensandbox::lifecycle {

/// The life of sandboxes on one host: create, read, renew, patch, remove, expire, recover. The
/// store is the truth for what should exist, the runtime for what does. A full disk does not stop a
/// removal: the row goes when there is space again, at the latest a second after. Store, runtime
/// and pool are borrowed; make it with std::make_shared.
class HostLifecycle final : public Lifecycle, public std::enable_shared_from_this<HostLifecycle> {
  public:
    HostLifecycle(asio::any_io_executor executor, asio::thread_pool& blocking,
                  store::SandboxStore& store, runtime::Runtime& runtime, AdmissionRules rules);

    /// Loads the rows, starts the runtime, reconciles the two and begins to expire.
    Awaitable<Status> start() override;
    Awaitable<void> stop(std::chrono::milliseconds grace) override;
    Awaitable<Result<Created>> create(model::CreateRequest request,
                                      std::optional<IdempotencyKey> key,
                                      Requester requester) override;
    Awaitable<Status> remove(std::string id) override;
    Awaitable<Result<Timestamp>> renew(std::string id, Timestamp expires_at) override;
    Awaitable<Result<Timestamp>> extend(std::string id, std::chrono::seconds by) override;
    Awaitable<Result<std::string>> patch_metadata(std::string id,
                                                  model::MetadataPatch patch) override;
    [[nodiscard]] Result<AgentAccess> agent(std::string_view id) const override;
    Awaitable<Status> pause(std::string id) override;
    Awaitable<Status> resume(std::string id) override;
    Awaitable<Result<std::vector<std::string>>> fork(std::string id, model::ForkRequest request,
                                                     Requester requester) override;
    HostSnapshots& snapshots() override { return snapshots_; }
    HostPools& pools() override { return pools_; }
    Awaitable<Result<std::string>> logs(std::string id, runtime::LogQuery query) override;
    Awaitable<Result<runtime::Inspection>> inspect(std::string id) override;
    Awaitable<Result<std::vector<runtime::SandboxUsage>>> usage(std::size_t limit) override;
    [[nodiscard]] const SandboxIndex& index() const override { return index_; }
    [[nodiscard]] runtime::Capabilities capabilities() const override {
        return runtime_.capabilities();
    }
    [[nodiscard]] runtime::Figures figures() const override { return runtime_.figures(); }
    [[nodiscard]] std::string_view error_prefix() const override { return runtime_.error_prefix(); }

  private:
    struct Removal;
    using Change = std::function<Status(store::SandboxStore&)>;

    Awaitable<Result<Timestamp>> set_expiry(std::string id, Timestamp expires_at);
    /// Runs a write on the blocking pool.
    Awaitable<Status> commit(Change change);

    Awaitable<Result<Created>> make(model::CreateRequest request, std::optional<IdempotencyKey> key,
                                    Requester requester);
    /// A request that may come in, and where it takes its sandbox from.
    struct Entrant {
        Admitted admitted;
        HostPools::Key pool;     ///< without a name: none
        bool fits_idle = false;  ///< an idle one of the pool can be it
    };
    [[nodiscard]] Result<HostPools::Key> choose_pool(const model::CreateRequest& request,
                                                     const std::string& tenant) const;
    [[nodiscard]] Result<Entrant> let_in(const model::CreateRequest& request,
                                         const std::string& tenant) const;
    static std::optional<store::KeyRecord> key_row(const std::optional<IdempotencyKey>& key,
                                                   const store::SandboxRecord& record);
    Awaitable<Status> make_new(Admitted& admitted, std::optional<IdempotencyKey> key,
                               QuotaLedger::Hold& claim);
    Awaitable<Status> hand_out(store::SandboxRecord idle, Admitted& admitted,
                               std::optional<IdempotencyKey> key);
    Awaitable<Status> bring_up(Admitted& admitted);
    Awaitable<void> undo(std::string id);
    Result<Created> replay(const std::string& id, const IdempotencyKey& key) const;

    struct Litter;
    [[nodiscard]] Status check_forkable(const std::string& id) const;
    Awaitable<Result<runtime::SnapshotReference>> keep_for_copies(std::string id,
                                                                  std::string fork_id);
    Awaitable<Status> bring_up_all(std::shared_ptr<Litter> litter);
    Awaitable<void> bring_up_one(std::shared_ptr<Litter> litter, std::size_t which);
    Awaitable<Status> settle_all(Litter& litter);
    Awaitable<void> undo_all(Litter& litter);

    Awaitable<Status> remove_once(std::string id, bool only_if_due, bool& skipped);
    Awaitable<Status> remove_locked(std::string id, bool only_if_due, bool& skipped);
    Awaitable<void> expire(std::string id);
    Awaitable<void> run_expiry();
    Awaitable<void> forget_old_keys();
    Awaitable<void> drop_late_rows();

    Awaitable<Status> set_status(std::string id, model::SandboxStatus status);
    Awaitable<Status> turn_over(std::string id, bool to_paused);
    Awaitable<Status> change_over(std::string id, model::SandboxStatus before, bool to_paused);
    Awaitable<void> handle_change(std::string id, runtime::Change change);

    Awaitable<Status> recover();
    Awaitable<Status> settle(RecoveryPlan plan);
    using Rows = std::map<std::string, store::SandboxRecord>;
    Awaitable<Status> settle_idle(RecoveryPlan& plan, Rows idle);
    Awaitable<void> remove_remains(std::string id);
    Awaitable<void> destroy_orphan(std::string id);
    Awaitable<void> handle_exit(std::string id, runtime::Exit exit);
    void spawn(Awaitable<void> task, std::string_view name);

    asio::any_io_executor executor_;
    asio::thread_pool& blocking_;
    store::SandboxStore& store_;
    runtime::Runtime& runtime_;
    AdmissionRules rules_;
    SandboxIndex index_;
    ExpiryQueue expiry_;
    KeyTable keys_;
    /// What changes one sandbox takes turns.
    KeyedMutex turns_;
    /// What needs a sandbox to stay as it is, or ends that, takes turns here first: a snapshot may
    /// take long, and renewals must not wait for it.
    KeyedMutex holds_;
    HostSnapshots snapshots_;
    HostPools pools_;
    QuotaLedger quotas_;
    net::Event wake_;
    std::set<std::string> late_rows_;  ///< of sandboxes that are gone, still in the store
    std::map<std::string, std::shared_ptr<Removal>, std::less<>> removals_;
    std::size_t busy_ = 0;  ///< creates and removals in flight
    bool stopping_ = false;
};

}  // namespace opensandbox::lifecycle
