#pragma once

#include "agent/process/environment.hpp"
#include "agent/process/reaper.hpp"
#include "model/task.hpp"
#include "net/task.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// Tasks of one pod (kubernetes 2.3): at most one is active. Their processes are leaders of their
/// groups and write to this process's output. For one event loop.
class TaskTable {
  public:
    /// `environment` is that of every task, below its own.
    TaskTable(asio::any_io_executor executor, Reaper& reaper, Environment environment);
    TaskTable(const TaskTable&) = delete;
    TaskTable& operator=(const TaskTable&) = delete;

    [[nodiscard]] std::vector<model::Task> list() const;
    [[nodiscard]] std::optional<model::Task> find(std::string_view name) const;
    /// Starts it, unless there is one of its name. `conflict` while another is active.
    Status add(model::Task task);
    /// What is not wanted is ended and forgotten, what is missing is begun, once the former has
    /// ended.
    Awaitable<Status> set(std::vector<model::Task> wanted);
    /// Ends it, by force after ten seconds, and forgets it. Nothing when there is none.
    Awaitable<void> remove(std::string name);
    Awaitable<void> remove_all();

  private:
    struct Entry;
    using Entries = std::vector<std::shared_ptr<Entry>>;
    Status begin(Entry& entry);
    void ended(const std::weak_ptr<Entry>& which);
    [[nodiscard]] Entries::const_iterator at(std::string_view name) const;

    asio::any_io_executor executor_;
    Reaper& reaper_;
    Environment environment_;
    Entries entries_;
};

}  // namespace opensandbox::agent
