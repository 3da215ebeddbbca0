#pragma once

#include "lifecycle/admission.hpp"
#include "lifecycle/expiry_queue.hpp"
#include "lifecycle/idempotency.hpp"
#include "lifecycle/keyed_mutex.hpp"
#include "lifecycle/pools.hpp"
#include "lifecycle/quota_ledger.hpp"
#include "lifecycle/recovery_plan.hpp"
#include "lifecycle/sandbox_index.hpp"
#include "lifecycle/snapshots.hpp"
#include "model/fork_request.hpp"
#include "model/metadata.hpp"
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

/// How the agent of a sandbox is reached.
struct AgentAccess {
    model::Endpoints endpoints;
    std::string token;
    std::string tenant;
    model::SandboxStatus status;
    std::optional<std::int64_t> renew_seconds;  ///< by how much traffic extends its life
};

/// Who asks.
struct Requester {
    std::string tenant;  ///< empty where there is one tenant
    model::Quota quota;  ///< what it may have at once
};

/// The life of sandboxes: create, read, renew, patch, remove, expire, recover. The store is the
/// truth for what should exist, the runtime for what does; reads come from memory. Runs on one
/// event loop. Store, runtime and pool are borrowed; make it with std::make_shared.
class Lifecycle : public std::enable_shared_from_this<Lifecycle> {
  public:
    Lifecycle(asio::any_io_executor executor, asio::thread_pool& blocking,
              store::SandboxStore& store, runtime::Runtime& runtime, AdmissionRules rules);

    /// Loads the rows, starts the runtime, reconciles the two and begins to expire. Once.
    Awaitable<Status> start();
    /// Waits for changes in flight, at most `grace`. Sandboxes live on.
    Awaitable<void> stop(std::chrono::milliseconds grace);

    /// What create answers.
    struct Created {
        std::string id;
        std::string json;
        bool replayed = false;  ///< by its Idempotency-Key
    };
    /// Returns when a command works in the sandbox; on failure nothing is left of it. Runs to its
    /// end whether or not anybody still waits.
    Awaitable<Result<Created>> create(model::CreateRequest request,
                                      std::optional<IdempotencyKey> key,
                                      Requester requester = Requester());
    /// `<P>::SANDBOX_NOT_FOUND`. The JSON is valid until the next suspension.
    [[nodiscard]] Result<std::string_view> get(std::string_view id) const;
    [[nodiscard]] std::string list(const ListQuery& query) const { return index_.list(query); }
    /// Concurrent removals of one sandbox are one. A full disk does not stop it: the row goes when
    /// there is space again, at the latest a second after.
    Awaitable<Status> remove(std::string id);
    /// The new expiry. Past times 400, sandboxes without expiry 409 (lifecycle 2.4).
    Awaitable<Result<Timestamp>> renew(std::string id, Timestamp expires_at);
    /// Lets it live at least `by` from now: never shortens. The expiry that holds then.
    Awaitable<Result<Timestamp>> extend(std::string id, std::chrono::seconds by);
    /// The sandbox's JSON after the patch.
    Awaitable<Result<std::string>> patch_metadata(std::string id, model::MetadataPatch patch);
    [[nodiscard]] Result<AgentAccess> agent(std::string_view id) const;
    /// 409 `<P>::SANDBOX_NOT_RUNNING` / `_NOT_PAUSED`, 500 `_PAUSE_FAILED` / `_RESUME_FAILED`; 501
    /// where the runtime cannot.
    Awaitable<Status> pause(std::string id);
    Awaitable<Status> resume(std::string id);
    /// Running copies of a sandbox that runs or is paused, as their JSON: all or none. They have
    /// its files, not its processes. 409 in other states, 501 where the runtime cannot; runs to its
    /// end whether or not anybody still waits.
    Awaitable<Result<std::vector<std::string>>> fork(std::string id, model::ForkRequest request,
                                                     Requester requester = Requester());
    [[nodiscard]] Snapshots& snapshots() { return snapshots_; }
    [[nodiscard]] Pools& pools() { return pools_; }

    // Diagnostics (lifecycle 5).

    /// What the sandbox's entrypoint wrote; empty when the runtime knows nothing of it any more.
    Awaitable<Result<std::string>> logs(std::string id, runtime::LogQuery query);
    /// As its backend sees it. Where the backend knows nothing of it, what its row says.
    Awaitable<Result<runtime::Inspection>> inspect(std::string id);
    /// What sandboxes use that are somebody's, of at most `limit` of them.
    Awaitable<Result<std::vector<runtime::SandboxUsage>>> usage(std::size_t limit);
    /// Oldest first; empty when it is unknown.
    [[nodiscard]] std::vector<SandboxEvent> events(std::string_view id) const;

    [[nodiscard]] const SandboxIndex& index() const { return index_; }
    [[nodiscard]] const runtime::Runtime& runtime() const { return runtime_; }
    [[nodiscard]] std::string error_code(std::string_view suffix) const;
    /// What is said of an id that nobody has.
    [[nodiscard]] Error not_found(std::string_view id) const;

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
        Pools::Key pool;         ///< without a name: none
        bool fits_idle = false;  ///< an idle one of the pool can be it
    };
    [[nodiscard]] Result<Pools::Key> choose_pool(const model::CreateRequest& request,
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
    Snapshots snapshots_;
    Pools pools_;
    QuotaLedger quotas_;
    net::Event wake_;
    std::set<std::string> late_rows_;  ///< of sandboxes that are gone, still in the store
    std::map<std::string, std::shared_ptr<Removal>, std::less<>> removals_;
    std::size_t busy_ = 0;  ///< creates and removals in flight
    bool stopping_ = false;
};

}  // namespace opensandbox::lifecycle
