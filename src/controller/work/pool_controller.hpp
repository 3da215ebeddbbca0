#pragma once

#include "controller/plan/pool_plan.hpp"
#include "controller/work/cluster_view.hpp"
#include "controller/work/event_writer.hpp"
#include "controller/work/work_queue.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace opensandbox::controller {

/// What the controller of pools did since it began.
struct PoolTotals {
    std::uint64_t looked = 0;
    std::uint64_t failed = 0;
    std::uint64_t pods_made = 0;
    std::uint64_t pods_removed = 0;
    std::uint64_t claimed = 0;
    std::uint64_t lost_claims = 0;  ///< pods that another had first
};

/// Keeps Pools at their size and gives their pods to BatchSandboxes. Servers claim pods by the same
/// annotation: the API server is the one arbiter. Borrows everything; for one event loop.
class PoolController {
  public:
    PoolController(asio::any_io_executor executor, kube::Client& client, ClusterView& view,
                   EventWriter& events, std::size_t workers, std::string who);
    PoolController(const PoolController&) = delete;
    PoolController& operator=(const PoolController&) = delete;

    Awaitable<void> work() { return queue_.run(); }
    void stop() { queue_.stop(); }
    [[nodiscard]] const PoolTotals& totals() const { return totals_; }
    [[nodiscard]] const WorkQueue& queue() const { return queue_; }
    /// Whether sandboxes of this pool wait though it has as many pods as it may.
    [[nodiscard]] bool is_full(const kube::ObjectKey& pool) const { return full_.contains(pool); }

  private:
    using Pool = runtime::kubernetes::Pool;

    Awaitable<Result<WorkQueue::Again>> look_at(kube::ObjectKey key);
    Awaitable<Status> look_at_orphans(kube::ObjectKey key);
    Awaitable<Status> grant(PoolPlan::Grant grant);
    Awaitable<Status> release(PoolPlan::Release release);
    Awaitable<Status> take_back(PoolPlan::Return returned);
    Awaitable<Status> drop_finalizer(BatchPointer batch);
    Awaitable<Status> remove_pod(PodPointer pod);
    Awaitable<Status> make_pod(const Pool* pool, std::string revision);
    Awaitable<Status> write_status(const Pool* pool, runtime::kubernetes::PoolFigures figures);
    [[nodiscard]] std::vector<PodPointer> pods_of(const Pool& pool) const;
    [[nodiscard]] std::vector<BatchPointer> batches_of(const kube::ObjectKey& pool) const;

    kube::Client& client_;
    ClusterView& view_;
    EventWriter& events_;
    std::string who_;
    WorkQueue queue_;
    std::map<kube::ObjectKey, std::set<kube::ObjectKey>> pods_by_pool_;
    std::map<kube::ObjectKey, std::set<kube::ObjectKey>> batches_by_pool_;
    std::set<kube::ObjectKey> full_;
    std::map<kube::ObjectKey, Timestamp> written_;  ///< status of pools
    PoolTotals totals_;
};

}  // namespace opensandbox::controller
