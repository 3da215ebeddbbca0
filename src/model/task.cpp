#include "model/task.hpp"

#include "json/fields.hpp"

namespace opensandbox::model {
namespace {

using State = TaskStatus::State;
constexpr std::size_t kLongestName = 253;

struct Variable {
    std::string name;
    std::string value;
};
constexpr auto kVariableMembers = [](auto& walker, auto& variable) {
    walker.put("name", variable.name);
    walker.put(json::Field("value").may_lack(), variable.value);
};

constexpr auto kProcessMembers = [](auto& walker, auto& process) {
    walker.put(json::Field("command").may_lack(), process.command);
    walker.put(json::Field("args").may_lack(), process.args);
    walker.put(json::Field("workingDir").may_lack(), process.working_dir);
    walker.put("timeoutSeconds", process.timeout_seconds);
};

struct Ending {
    std::int64_t exit_code = 0;
    std::int64_t signal = 0;
    std::string reason;
    std::string message;
    std::optional<Timestamp> started_at;
    std::optional<Timestamp> finished_at;
};
constexpr auto kEndingMembers = [](auto& walker, auto& ending) {
    walker.put("exitCode", ending.exit_code);
    walker.put(json::Field("signal").may_lack(), ending.signal);
    walker.put(json::Field("reason").may_lack(), ending.reason);
    walker.put(json::Field("message").may_lack(), ending.message);
    walker.put("startedAt", ending.started_at);
    walker.put("finishedAt", ending.finished_at);
};

const json::object* member(const json::object& from, std::string_view name) {
    const json::value* found = json::find(from, name);
    return found ? found->if_object() : nullptr;
}

Status read_status(const json::object& from, TaskStatus& status) {
    if (const json::object* ended = member(from, "terminated")) {
        auto ending = json::read_fields<Ending>(*ended, kEndingMembers);
        if (!ending) return ending.error().within("terminated");
        status.state = State::terminated;
        status.exit_code = static_cast<int>(ending->exit_code);
        status.signal = static_cast<int>(ending->signal);
        status.reason = std::move(ending->reason);
        status.message = std::move(ending->message);
        status.started_at = ending->started_at;
        status.finished_at = ending->finished_at;
    } else if (member(from, "running")) {
        status.state = State::running;
    } else if (member(from, "waiting")) {
        status.state = State::waiting;
    }
    return {};
}

json::value time_of(const std::optional<Timestamp>& at) {
    return at ? json::value(to_rfc3339(*at)) : json::value();
}

json::object write_status(const TaskStatus& status) {
    json::object out;
    switch (status.state) {
        case State::waiting: out["waiting"] = json::object{{"reason", status.reason}}; break;
        case State::running:
            out["running"] = json::object{{"startedAt", time_of(status.started_at)}};
            break;
        case State::terminated:
            out["terminated"] = json::object{{"exitCode", status.exit_code},
                                             {"signal", status.signal},
                                             {"reason", status.reason},
                                             {"message", status.message},
                                             {"startedAt", time_of(status.started_at)},
                                             {"finishedAt", time_of(status.finished_at)}};
            break;
        case State::unknown: break;
    }
    return out;
}

}  // namespace

Result<TaskProcess> read_task_process(const json::object& object) {
    auto process = json::read_fields<TaskProcess>(object, kProcessMembers);
    if (!process) return process.error();
    if (process->command.empty()) return invalid("command: must name a program");
    const json::value* env = json::find(object, "env");
    if (!env) return process;
    if (!env->is_array()) return invalid("env: must be a list");
    for (const json::value& entry : env->get_array()) {
        if (!entry.is_object()) return invalid("env: must be a list of objects");
        auto variable = json::read_fields<Variable>(entry.get_object(), kVariableMembers);
        if (!variable) return variable.error().within("env");
        process->env.emplace_back(std::move(variable->name), std::move(variable->value));
    }
    return process;
}

json::object write_task_process(const TaskProcess& process) {
    json::object out{{"command", json::string_array(process.command)}};
    if (!process.args.empty()) out["args"] = json::string_array(process.args);
    if (!process.env.empty()) {
        json::array env;
        for (const auto& [name, value] : process.env)
            env.emplace_back(json::object{{"name", name}, {"value", value}});
        out["env"] = std::move(env);
    }
    if (!process.working_dir.empty()) out["workingDir"] = process.working_dir;
    if (process.timeout_seconds) out["timeoutSeconds"] = *process.timeout_seconds;
    return out;
}

Result<Task> read_task(const json::object& object) {
    Task task;
    auto name = json::get_string(object, "name");
    if (!name) return name.error();
    task.name = name->value_or("");
    if (task.name.empty() || task.name.size() > kLongestName ||
        task.name.find('/') != std::string::npos || task.name.starts_with('.')) {
        return invalid("name: must be 1 to 253 characters without '/' and not begin with '.'");
    }
    if (const json::object* process = member(object, "process")) {
        auto read = read_task_process(*process);
        if (!read) return read.error().within("process");
        task.process = std::move(*read);
    }
    if (const json::object* status = member(object, "processStatus")) {
        if (auto read = read_status(*status, task.status); !read)
            return read.error().within("processStatus");
    }
    return task;
}

Result<std::vector<Task>> parse_tasks(std::string_view text) {
    auto document = json::parse(text);
    if (!document) return document.error();
    if (!document->is_array()) return invalid("must be a list of tasks");
    std::vector<Task> tasks;
    for (const json::value& entry : document->get_array()) {
        if (!entry.is_object()) return invalid("must be a list of tasks");
        auto task = read_task(entry.get_object());
        if (!task) return task.error();
        tasks.push_back(std::move(*task));
    }
    return tasks;
}

json::object write_task(const Task& task) {
    json::object out{{"name", task.name}};
    if (task.process) out["process"] = write_task_process(*task.process);
    if (task.status.state != State::unknown) out["processStatus"] = write_status(task.status);
    return out;
}

std::string tasks_json(const std::vector<Task>& tasks) {
    json::array list;
    for (const Task& task : tasks)
        list.emplace_back(write_task(task));
    return json::serialize(list);
}

}  // namespace opensandbox::model
