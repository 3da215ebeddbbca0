#include "agent/hooks/hooks.hpp"

#include "agent/process/spawn.hpp"
#include "agent/stream/output_pipe.hpp"
#include "base/log.hpp"
#include "net/task.hpp"

#include <array>
#include <csignal>
#include <optional>
#include <unistd.h>

namespace opensandbox::agent {

namespace {

/// As much of its output as an error repeats.
constexpr std::size_t kTail = 2'048;
constexpr std::chrono::seconds kKillGrace{5};
/// Read in one turn of the event loop, so that a loud hook leaves time for others.
constexpr int kPiecesPerTurn = 4;
/// More than a pipe holds.
constexpr int kPiecesAtEnd = 1'000;

}  // namespace

/// One run of a hook.
struct Hooks::Run {
    Run(const asio::any_io_executor& executor, OutputLog& into) : ended(executor), log(&into) {}

    void read_output(int pieces) {
        std::array<char, 16 * 1024> piece;
        while (pipe && pipe->ready() && pieces-- > 0) {
            const std::string_view bytes(piece.data(), pipe->read(piece));
            log->append(bytes, now());
            tail += bytes;
            if (tail.size() > kTail) tail.erase(0, tail.size() - kTail);
        }
        if (pipe) pipe->arm();
    }

    net::Event ended;
    OutputLog* log;
    std::shared_ptr<Child> child;
    std::optional<OutputPipe> pipe;  ///< none when the output is inherited
    std::string tail;
};

Status Hooks::configure(std::string_view text) {
    auto plan = model::HookPlan::parse(text);
    if (!plan) return plan.error();
    plan_ = std::move(*plan);
    return {};
}

Result<std::shared_ptr<Hooks::Run>> Hooks::start(const model::PlannedHook& hook) {
    auto run = std::make_shared<Run>(executor_, *log_);
    SpawnRequest request;
    request.programs.push_back(program_of(hook.command, context_->environment.get("PATH")));
    request.environment = context_->environment.entries();
    request.credentials = context_->user.credentials();
    UniqueFd write_end;
    if (inherit_output_) {
        request.standard_output = STDOUT_FILENO;
        request.standard_error = STDERR_FILENO;
    } else {
        auto pipe = OutputPipe::open(executor_, write_end,
                                     [raw = run.get()] { raw->read_output(kPiecesPerTurn); });
        if (!pipe) return pipe.error();
        run->pipe.emplace(std::move(*pipe));
        request.standard_output = write_end.get();
        request.standard_error = write_end.get();
    }
    auto pid = spawn(request);
    if (!pid) return pid.error();
    run->child = context_->reaper.watch(*pid);
    run->child->on_exit([weak = std::weak_ptr(run)] {
        if (const auto held = weak.lock()) held->ended.notify();
    });
    if (run->pipe) run->pipe->arm();
    return run;
}

Awaitable<Status> Hooks::run(model::PlannedHook hook) {
    auto started = start(hook);
    if (!started) co_return Status(started.error());
    const std::shared_ptr<Run>& run = *started;
    const bool in_time = co_await run->ended.wait_for(hook.timeout);
    if (!in_time) {
        run->child->signal_group(SIGKILL);
        (void)co_await run->ended.wait_for(kKillGrace);
    }
    if (run->pipe) {
        // What it left running may hold the pipe.
        run->pipe->limit_to_present();
        run->read_output(kPiecesAtEnd);
    }
    std::string failure;
    if (!in_time) {
        failure = "did not end within " + std::to_string(hook.timeout.count()) + " seconds";
    } else if (run->child->status() && !run->child->status()->success()) {
        failure = run->child->status()->describe();
    }
    if (failure.empty()) co_return Status();
    if (!run->tail.empty()) failure += ": " + run->tail;
    co_return Status(Error(ErrorCode::internal, std::move(failure)));
}

Awaitable<Status> Hooks::pre_start() {
    auto status = co_await run(*plan_.pre_start);
    if (status) co_return Status();
    co_return Status(Error(ErrorCode::internal, "SANDBOX_START_FAILED",
                           "lifecycle.preStart: " + status.error().message()));
}

void Hooks::start_periodic() {
    for (const model::ScheduledHook& periodic : plan_.periodic)
        net::spawn(executor_, repeat(periodic), "periodic hook");
}

Awaitable<void> Hooks::repeat(model::ScheduledHook periodic) {
    while (true) {
        const Timestamp due = periodic.schedule.next_after(now());
        // The clock may be set meanwhile.
        while (now() < due) {
            const auto left = due - now();
            co_await net::sleep_for(
                std::min<std::chrono::microseconds>(left, std::chrono::hours(1)));
        }
        auto status = co_await run(periodic.hook);
        if (!status) {
            log::warn("a periodic hook failed",
                      {{"hook", periodic.hook.name}, {"reason", status.error().message()}});
        }
    }
}

}  // namespace opensandbox::agent
