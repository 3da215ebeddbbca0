#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"
#include "model/json_text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A process that is started in a pod for a sandbox: what controller, server and the executor in
/// the pod tell each other (kubernetes 2.3). Pure.
namespace opensandbox::model {

struct TaskProcess {
    std::vector<std::string> command;  ///< not empty
    std::vector<std::string> args;
    StringMap env;  ///< over the container's own
    std::string working_dir;
    std::optional<std::int64_t> timeout_seconds;
};

struct TaskStatus {
    enum class State : std::uint8_t { unknown, waiting, running, terminated };
    State state = State::unknown;
    int exit_code = 0;
    int signal = 0;
    std::string reason;  ///< ProcessCrashed, TaskTimeout…
    std::string message;
    std::optional<Timestamp> started_at;
    std::optional<Timestamp> finished_at;

    [[nodiscard]] bool succeeded() const {
        return state == State::terminated && exit_code == 0 && signal == 0;
    }
};

struct Task {
    std::string name;
    std::optional<TaskProcess> process;
    TaskStatus status;
};

/// `invalid_argument` names the member. A name is 1 to 253 characters without '/'.
Result<Task> read_task(const json::object& object);
Result<std::vector<Task>> parse_tasks(std::string_view text);
json::object write_task(const Task& task);
std::string tasks_json(const std::vector<Task>& tasks);

/// A process as `spec.taskTemplate.spec.process` of a BatchSandbox has it.
Result<TaskProcess> read_task_process(const json::object& object);
json::object write_task_process(const TaskProcess& process);

/// Where an executor listens.
inline constexpr std::uint16_t kTaskPort = 5758;
/// Ours alone: what an executor whose environment has kTaskTokenVariable wants in every request.
inline constexpr std::string_view kTaskTokenField = "X-Task-Token";
inline constexpr std::string_view kTaskTokenVariable = "OPENSANDBOX_TASK_TOKEN";

}  // namespace opensandbox::model
