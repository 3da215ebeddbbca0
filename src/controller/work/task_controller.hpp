#pragma once

#include "controller/plan/batch_plan.hpp"
#include "controller/work/cluster_view.hpp"
#include "controller/work/work_queue.hpp"
#include "runtime/kubernetes/task_client.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace opensandbox::controller {

/// Gives the task of each replica to the executor in its pod, and watches how it goes (kubernetes
/// 2.3). A task that an executor has already, by its name, is the one: nobody does it twice. An
/// executor that does not answer is asked again, and says nothing about its task. Borrows
/// everything; for one event loop.
class TaskController {
  public:
    TaskController(asio::any_io_executor executor, kube::Client& client, ClusterView& view,
                   std::size_t workers);
    TaskController(const TaskController&) = delete;
    TaskController& operator=(const TaskController&) = delete;

    Awaitable<void> work() { return queue_.run(); }
    void stop() { queue_.stop(); }
    [[nodiscard]] const WorkQueue& queue() const { return queue_; }
    /// How many of its tasks are where; all zero without tasks.
    [[nodiscard]] runtime::kubernetes::BatchCounters counters_of(
        const runtime::kubernetes::BatchSandbox& batch) const;

  private:
    using BatchSandbox = runtime::kubernetes::BatchSandbox;

    /// What is known of the task of one replica.
    struct Progress {
        std::string pod_uid;  ///< whose executor has it
        model::TaskStatus status;
        bool reached = false;  ///< that executor has answered
    };
    using Tasks = std::map<std::int64_t, Progress>;

    Awaitable<Result<WorkQueue::Again>> look_at(kube::ObjectKey key);
    Awaitable<Status> ask(const BatchSandbox* batch, std::int64_t index, PodPointer pod,
                          Tasks* tasks);
    Awaitable<Status> release_pods(const BatchSandbox* batch, const Tasks* tasks);
    [[nodiscard]] std::vector<PodPointer> pods_of(const BatchSandbox& batch) const;
    [[nodiscard]] std::string token_for(const BatchSandbox& batch) const;

    kube::Client& client_;
    ClusterView& view_;
    runtime::kubernetes::TaskClient executors_;
    WorkQueue queue_;
    std::map<std::string, Tasks> tasks_;  ///< by UID of the object
};

}  // namespace opensandbox::controller
