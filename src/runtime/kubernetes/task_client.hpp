#pragma once

#include "http/client.hpp"
#include "model/task.hpp"

#include <string>
#include <vector>

namespace opensandbox::runtime::kubernetes {

/// Where the executor of a pod is, and what it wants to be told.
struct TaskExecutor {
    std::string address;
    std::string token;  ///< empty: none
};

/// Talks to executors in pods, ours and published ones (kubernetes 2.3). A call takes three seconds
/// at most: `unavailable` or `timeout` when there is no answer, which is not the same as no task.
class TaskClient {
  public:
    explicit TaskClient(asio::any_io_executor executor);

    Awaitable<Result<std::vector<model::Task>>> list(TaskExecutor executor);
    /// What there is afterwards.
    Awaitable<Result<std::vector<model::Task>>> set(TaskExecutor executor,
                                                    std::vector<model::Task> wanted);

  private:
    Awaitable<Result<std::vector<model::Task>>> call(TaskExecutor executor, std::string method,
                                                     std::string path, std::string content);

    http::Client client_;
};

}  // namespace opensandbox::runtime::kubernetes
