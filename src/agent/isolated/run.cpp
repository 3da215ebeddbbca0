#include "agent/isolated/run.hpp"

#include "agent/command/execution.hpp"
#include "agent/ground/reply.hpp"
#include "agent/process/environment_file.hpp"
#include "base/identifier.hpp"

#include <signal.h>

namespace opensandbox::agent {
namespace {

constexpr std::chrono::seconds kKillGrace{2};
constexpr std::chrono::seconds kTrimEvery{1};

/// What a run of this session gets to see of the agent's environment, and its own.
Environment run_environment(const ProcessContext& context, const IsolatedSession& session,
                            const RunRequest& request) {
    Environment all = context.environment;
    all.merge(read_environment_file(context.environment));
    const auto& filter = session.request().environment;
    Environment out;
    for (const std::string& entry : all.entries()) {
        std::size_t equals = entry.find('=');
        std::string name = entry.substr(0, equals);
        if (filter && !filter->passes(name)) continue;
        out.set(std::move(name), entry.substr(equals + 1));
    }
    out.merge(request.envs);
    return out;
}

SpawnRequest prepare_run(const ProcessContext& context, const IsolatedSession& session,
                         const RunRequest& request) {
    SpawnRequest out;
    Environment environment = run_environment(context, session, request);
    auto path = environment.get("PATH");
    if (!path) path = context.environment.get("PATH");
    out.programs = session_shells(request, path);
    out.environment = environment.entries();
    out.directory = session.request().mounts.front().path;
    out.enclosure = &session.enclosure();
    const IsolatedSessionRequest& wanted = session.request();
    if (wanted.uid_mode == UidMode::userns) return out;
    if (wanted.uid) {
        out.credentials = credentials_for(*wanted.uid, wanted.gid);
    } else {
        out.credentials = context.user.credentials();
    }
    return out;
}

/// One foreground run.
class ForegroundRun : public std::enable_shared_from_this<ForegroundRun> {
  public:
    explicit ForegroundRun(asio::any_io_executor executor)
        : executor_(executor),
          pump_(std::make_shared<EventPump>(executor, new_uuid(), LineForm::exact)) {}
    ForegroundRun(const ForegroundRun&) = delete;
    ForegroundRun& operator=(const ForegroundRun&) = delete;
    ~ForegroundRun() {
        for (auto& pipe : {output_, error_}) {
            if (pipe) pipe->discard_rest();
        }
    }

    [[nodiscard]] const std::shared_ptr<EventPump>& pump() const { return pump_; }

    void start(Reaper& reaper, SpawnRequest request, std::chrono::milliseconds timeout) {
        if (Status launched = launch(reaper, request); !launched) {
            const std::string reason = launched.error().message();
            pump_->end({"CommandExecError", reason, {reason}});
            return;
        }
        if (timeout.count() == 0) return;
        soft_.emplace(executor_, timeout, [weak = weak_from_this(), timeout] {
            auto self = weak.lock();
            if (!self) return;
            self->timeout_ = timeout;
            self->interrupt();
        });
    }

    /// SIGINT to the run, then KILL.
    void interrupt() {
        if (!child_ || child_->status()) return;
        child_->signal_group(SIGINT);
        hard_.emplace(executor_, kKillGrace, [child = child_] { child->signal_group(SIGKILL); });
    }

  private:
    Status launch(Reaper& reaper, SpawnRequest& request) {
        Result<pid_t> pid = spawn_into(*pump_, executor_, request, output_, error_);
        if (!pid) return pid.error();
        child_ = reaper.watch(*pid);
        child_->on_exit([weak = weak_from_this()] {
            if (auto self = weak.lock()) self->ended();
        });
        return {};
    }

    void ended() {
        soft_.reset();
        hard_.reset();
        RunEnd end = end_of(*child_->status());
        if (timeout_) {
            auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*timeout_).count();
            end.value = end.failed ? end.value : "-1";
            end.failed = true;
            end.name = "TimeoutError";
            end.traceback = {"timed out after " + std::to_string(seconds) + " s"};
        }
        pump_->end(std::move(end));
    }

    asio::any_io_executor executor_;
    std::shared_ptr<EventPump> pump_;
    std::shared_ptr<OutputPipe> output_;
    std::shared_ptr<OutputPipe> error_;
    std::shared_ptr<Child> child_;
    std::optional<net::Deadline> soft_;
    std::optional<net::Deadline> hard_;
    std::optional<std::chrono::milliseconds> timeout_;  ///< set once it passed
};

Error not_active(const IsolatedSession& session) {
    return {ErrorCode::not_found, std::string(code::kContextNotFound),
            "session " + session.id() + " has ended"};
}

Status check_runnable(const IsolatedSession& session) {
    if (session.state() != IsolatedSession::State::active) return not_active(session);
    if (!session.over_limit) return {};
    return Error(ErrorCode::resource_exhausted, std::string(code::kRuntimeError),
                 "the overlays of the session hold more than upper_max_bytes");
}

/// Keeps the output of a background run within its bounds.
Awaitable<void> supervise(Isolation& isolation, std::shared_ptr<IsolatedSession> session,
                          std::shared_ptr<BackgroundRun> run, std::shared_ptr<net::Event> ended) {
    bool trimmable = true;
    while (!run->finished_at) {
        if (trimmable) {
            co_await ended->wait_for(kTrimEvery);
            trimmable = run->output->trim(kMaxRunOutput);
        } else {
            co_await ended->wait();
        }
    }
    run->output->release();
    co_await isolation.account(session);
}

}  // namespace

Awaitable<void> run_foreground(ProcessContext& context, Isolation& isolation,
                               std::shared_ptr<IsolatedSession> session, RunRequest request,
                               http::Exchange& exchange) {
    IsolatedSession::Turn turn = co_await IsolatedSession::take_turn(session);
    // Something may have been deleted meanwhile.
    if (session->over_limit) co_await isolation.account(session);
    Status runnable = check_runnable(*session);
    if (!runnable) {
        co_await reply_error(exchange, runnable.error());
        co_return;
    }
    session->touch(true);
    auto run = std::make_shared<ForegroundRun>(context.executor);
    run->start(context.reaper, prepare_run(context, *session, request), request.timeout);
    bool complete = co_await EventPump::stream(run->pump(), exchange);
    if (!complete) {
        run->interrupt();
        co_await EventPump::run_unread(run->pump());
    }
    session->touch(false);
    co_await isolation.account(session);
}

Awaitable<Result<std::shared_ptr<BackgroundRun>>> start_background_run(
    ProcessContext& context, Isolation& isolation, std::shared_ptr<IsolatedSession> session,
    RunRequest request) {
    if (session->over_limit) co_await isolation.account(session);
    Status runnable = check_runnable(*session);
    if (!runnable) co_return runnable.error();
    const WorkMount& first = session->request().mounts.front();
    bool keeps =
        first.mode == MountMode::read_write || (first.mode == MountMode::overlay && first.persist);
    if (!keeps) {
        co_return Error(ErrorCode::invalid_argument,
                        "background: the first mount of the session must be rw or a persistent "
                        "overlay");
    }
    auto run = std::make_shared<BackgroundRun>();
    run->id = new_uuid();
    run->started_at = now();
    Result<std::shared_ptr<OutputFile>> output = isolation.outputs().create(run->id);
    if (!output) co_return output.error();
    run->output = std::move(*output);
    SpawnRequest prepared = prepare_run(context, *session, request);
    prepared.standard_output = run->output->descriptor();
    prepared.standard_error = run->output->descriptor();
    Result<pid_t> pid = spawn(prepared);
    if (!pid) co_return pid.error();
    run->child = context.reaper.watch(*pid);
    session->add(run);
    session->touch(true);
    auto ended = std::make_shared<net::Event>(context.executor);
    run->child->on_exit([run, session, ended] {
        ExitStatus status = *run->child->status();
        run->exit_code = status.client_code();
        if (!status.success()) run->error = status.describe();
        run->finished_at = now();
        run->child.reset();
        session->touch(false);
        ended->notify();
    });
    net::spawn(context.executor, supervise(isolation, session, run, ended), "background run");
    co_return run;
}

}  // namespace opensandbox::agent
