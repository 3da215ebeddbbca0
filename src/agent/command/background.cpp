#include "agent/command/background.hpp"

#include "net/task.hpp"

#include <optional>
#include <signal.h>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::uint64_t kMaxOutput = std::uint64_t{256} << 20;
constexpr std::chrono::seconds kTrimEvery{1};
constexpr std::chrono::seconds kTermGrace{3};
constexpr std::chrono::milliseconds kKillGrace{500};
constexpr std::chrono::milliseconds kPoll{20};

/// Keeps a running command's output within its bounds and its time.
Awaitable<void> supervise(std::shared_ptr<CommandRecord> record, std::shared_ptr<Child> child,
                          std::chrono::milliseconds timeout) {
    auto executor = co_await asio::this_coro::executor;
    auto ended = std::make_shared<net::Event>(executor);
    child->on_exit([ended] { ended->notify(); });
    std::optional<net::Deadline> deadline;
    if (timeout.count() > 0) {
        deadline.emplace(executor, timeout, [child] { child->signal_group(SIGKILL); });
    }
    bool trimmable = true;
    while (!child->status()) {
        if (trimmable) {
            co_await ended->wait_for(kTrimEvery);
            trimmable = record->output->trim(kMaxOutput);
        } else {
            co_await ended->wait();
        }
    }
}

}  // namespace

Status start_background(asio::any_io_executor executor, Reaper& reaper, CommandRegistry& registry,
                        const std::shared_ptr<CommandRecord>& record, SpawnRequest request,
                        std::chrono::milliseconds timeout) {
    Status opened = registry.open_output(*record);
    if (opened) {
        request.standard_output = record->output->descriptor();
        request.standard_error = record->output->descriptor();
    }
    Result<pid_t> pid = opened ? spawn(request) : Result<pid_t>(opened.error());
    if (!pid) {
        registry.failed(record, pid.error().message());
        return pid.error();
    }
    std::shared_ptr<Child> child = reaper.watch(*pid);
    registry.started(record, child);
    net::spawn(executor, supervise(record, child, timeout), "background command");
    return {};
}

Awaitable<Status> interrupt(asio::any_io_executor executor, Reaper& reaper,
                            std::shared_ptr<CommandRecord> record) {
    std::shared_ptr<Child> child = record->child;
    if (!child) co_return Error(ErrorCode::internal, "command " + record->id + " is not running");
    // As a zombie the leader keeps the group's number from being given to others.
    Reaper::Hold hold(reaper, child);
    auto ended = std::make_shared<net::Event>(executor);
    child->on_exit([ended] { ended->notify(); });
    auto gone = [&] { return child->status() && !group_has_living_member(child->pid()); };
    auto wait_gone = [&](steady_clock::time_point limit) -> Awaitable<bool> {
        while (!gone()) {
            if (steady_clock::now() >= limit) co_return false;
            if (child->status()) {
                co_await net::sleep_for(kPoll);
            } else {
                co_await ended->wait_for(limit - steady_clock::now());
            }
        }
        co_return true;
    };
    child->signal_group(SIGTERM);
    if (co_await wait_gone(steady_clock::now() + kTermGrace)) co_return Status();
    child->signal_group(SIGKILL);
    co_await wait_gone(steady_clock::now() + kKillGrace);
    co_return Status();
}

}  // namespace opensandbox::agent
