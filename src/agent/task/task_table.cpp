#include "agent/task/task_table.hpp"

#include "agent/process/spawn.hpp"
#include "base/log.hpp"
#include "net/latch.hpp"

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

using State = model::TaskStatus::State;

constexpr std::chrono::seconds kGrace{10};
/// What a shell says of a process that was killed; the contract's code for a task out of time.
constexpr int kKilledCode = 137;

}  // namespace

struct TaskTable::Entry {
    Entry(asio::any_io_executor executor, model::Task given)
        : task(std::move(given)), done(std::move(executor)) {}

    model::Task task;
    std::shared_ptr<Child> child;
    net::Latch done;
    std::unique_ptr<net::Deadline> deadline;
    bool timed_out = false;
};

TaskTable::TaskTable(asio::any_io_executor executor, Reaper& reaper, Environment environment)
    : executor_(std::move(executor)), reaper_(reaper), environment_(std::move(environment)) {}

TaskTable::Entries::const_iterator TaskTable::at(std::string_view name) const {
    return std::ranges::find_if(entries_,
                                [&](const auto& entry) { return entry->task.name == name; });
}

std::vector<model::Task> TaskTable::list() const {
    std::vector<model::Task> tasks;
    for (const auto& entry : entries_)
        tasks.push_back(entry->task);
    return tasks;
}

std::optional<model::Task> TaskTable::find(std::string_view name) const {
    const auto found = at(name);
    return found == entries_.end() ? std::nullopt : std::optional((*found)->task);
}

Status TaskTable::add(model::Task task) {
    if (at(task.name) != entries_.end()) return {};
    if (!task.process) {
        return Error(ErrorCode::invalid_argument, "task " + task.name + ": process: must be there");
    }
    for (const auto& entry : entries_) {
        if (entry->task.status.state == State::terminated) continue;
        return Error(ErrorCode::conflict, "task " + task.name + ": " + entry->task.name +
                                              " is active, and there is one at a time");
    }
    auto entry = std::make_shared<Entry>(executor_, std::move(task));
    if (auto begun = begin(*entry); !begun) return begun;
    std::weak_ptr<Entry> weak = entry;
    entry->child->on_exit([this, weak] { ended(weak); });
    if (const auto limit = entry->task.process->timeout_seconds; limit && *limit > 0) {
        entry->deadline =
            std::make_unique<net::Deadline>(executor_, std::chrono::seconds(*limit), [weak] {
                const auto late = weak.lock();
                if (!late) return;
                late->timed_out = true;
                late->child->signal_group(SIGKILL);
            });
    }
    entries_.push_back(std::move(entry));
    return {};
}

Status TaskTable::begin(Entry& entry) {
    const model::TaskProcess& process = *entry.task.process;
    Environment environment = environment_;
    if (auto fine = check_environment(process.env); !fine) return fine;
    environment.merge(process.env);
    std::vector<std::string> argv = process.command;
    argv.insert(argv.end(), process.args.begin(), process.args.end());
    SpawnRequest request;
    request.programs.push_back(program_of(std::move(argv), environment.get("PATH")));
    request.environment = environment.entries();
    request.directory = process.working_dir;
    request.standard_output = STDOUT_FILENO;
    request.standard_error = STDERR_FILENO;
    auto pid = spawn(request);
    if (!pid) return pid.error().within("task " + entry.task.name);
    entry.child = reaper_.watch(*pid);
    entry.task.status.state = State::running;
    entry.task.status.started_at = now();
    log::info("task begins", {{"task", entry.task.name}, {"pid", *pid}});
    return {};
}

void TaskTable::ended(const std::weak_ptr<Entry>& which) {
    const auto entry = which.lock();
    if (!entry) return;
    const ExitStatus exit = entry->child->status().value_or(ExitStatus());
    model::TaskStatus& status = entry->task.status;
    status.state = State::terminated;
    status.finished_at = now();
    status.exit_code = exit.shell_code();
    status.signal = exit.signal;
    if (entry->timed_out) {
        status.exit_code = kKilledCode;
        status.reason = "TaskTimeout";
        status.message = "the task took longer than it may";
    } else if (exit.signal != 0) {
        status.reason = "ProcessCrashed";
        status.message = exit.describe();
    } else {
        status.reason = exit.code == 0 ? "Succeeded" : "Failed";
    }
    entry->deadline.reset();
    log::info("task ended", {{"task", entry->task.name}, {"code", status.exit_code}});
    entry->done.open();
}

Awaitable<void> TaskTable::remove(std::string name) {
    const auto found = at(name);
    if (found == entries_.end()) co_return;
    const auto entry = *found;
    if (entry->task.status.state != State::terminated) {
        entry->child->signal_group(SIGTERM);
        net::Deadline force(executor_, kGrace, [entry] { entry->child->signal_group(SIGKILL); });
        co_await entry->done.wait();
        // What it left in its group goes with it.
        entry->child->signal_group(SIGKILL);
    }
    std::erase(entries_, entry);
}

Awaitable<void> TaskTable::remove_all() {
    while (!entries_.empty())
        co_await remove(entries_.front()->task.name);
}

Awaitable<Status> TaskTable::set(std::vector<model::Task> wanted) {
    std::vector<std::string> unwanted;
    for (const auto& entry : entries_) {
        if (std::ranges::none_of(wanted,
                                 [&](const auto& task) { return task.name == entry->task.name; })) {
            unwanted.push_back(entry->task.name);
        }
    }
    for (const std::string& name : unwanted)
        co_await remove(name);
    for (model::Task& task : wanted) {
        if (auto added = add(std::move(task)); !added) co_return added;
    }
    co_return Status();
}

}  // namespace opensandbox::agent
