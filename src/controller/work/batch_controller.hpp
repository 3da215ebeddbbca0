#pragma once

#include "controller/plan/batch_plan.hpp"
#include "controller/work/cluster_view.hpp"
#include "controller/work/event_writer.hpp"
#include "controller/work/pool_controller.hpp"
#include "controller/work/task_controller.hpp"
#include "controller/work/work_queue.hpp"
#include "runtime/kubernetes/names.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace opensandbox::controller {

struct BatchSettings {
    std::size_t workers = 32;
    RecoverySettings recovery;
};

/// What a controller did since it began.
struct BatchFigures {
    std::uint64_t looked = 0;
    std::uint64_t failed = 0;
    std::uint64_t pods_made = 0;
    std::uint64_t pods_removed = 0;
    std::uint64_t pods_replaced = 0;
    std::uint64_t expired = 0;
    std::uint64_t status_writes = 0;
};

/// Keeps BatchSandboxes as they are asked for: pods of those without a pool, and what all of them
/// say of themselves. Borrows everything; for one event loop.
class BatchController {
  public:
    BatchController(asio::any_io_executor executor, kube::Client& client, ClusterView& view,
                    EventWriter& events, const PoolController& pools, const TaskController& tasks,
                    BatchSettings settings);
    BatchController(const BatchController&) = delete;
    BatchController& operator=(const BatchController&) = delete;

    Awaitable<void> work() { return queue_.run(); }
    void stop() { queue_.stop(); }
    [[nodiscard]] const BatchFigures& figures() const { return figures_; }
    [[nodiscard]] const WorkQueue& queue() const { return queue_; }

  private:
    using BatchSandbox = runtime::kubernetes::BatchSandbox;
    using Pod = runtime::kubernetes::Pod;

    Awaitable<Result<WorkQueue::Again>> look_at(kube::ObjectKey key);
    Awaitable<Status> carry_out(const BatchSandbox* batch, BatchPlan* plan);
    Awaitable<Status> make_pods(const BatchSandbox* batch, const BatchPlan* plan);
    Awaitable<Status> make_pod(const BatchSandbox* batch, std::int64_t index);
    Awaitable<Status> remove_pods(const BatchSandbox* batch, const BatchPlan* plan);
    Awaitable<Status> write_down(const BatchSandbox* batch, BatchPlan* plan);
    void tell(const BatchSandbox& batch, const std::string& type, const std::string& reason,
              std::string message) {
        events_.tell(runtime::kubernetes::kBatchSandboxes, batch.metadata, type, reason,
                     std::move(message));
    }
    [[nodiscard]] BatchPlan plan(const BatchSandbox& batch, BatchMemory& memory) const;
    /// Empty: there are none.
    Awaitable<Result<WorkQueue::Again>> remove_orphans(kube::ObjectKey key, std::string uid);
    /// Pods of an owner of this name: those of this UID, or all others.
    [[nodiscard]] std::vector<PodPointer> pods_of(const kube::ObjectKey& owner,
                                                  const std::string& uid, bool others) const;

    kube::Client& client_;
    ClusterView& view_;
    EventWriter& events_;
    const PoolController& pools_;
    const TaskController& tasks_;
    BatchSettings settings_;
    WorkQueue queue_;
    std::map<kube::ObjectKey, std::set<kube::ObjectKey>> owned_;  ///< pods by their owner
    std::map<std::string, BatchMemory> memories_;                 ///< by UID
    std::map<std::string, Timestamp> orphans_;  ///< since when a pod, by its UID, is one
    BatchFigures figures_;
};

}  // namespace opensandbox::controller
