#include "agent/api/agent.hpp"

#include "agent/api/routes.hpp"
#include "agent/api/services.hpp"
#include "agent/ground/log_file.hpp"
#include "agent/ground/loop.hpp"
#include "agent/ground/publish.hpp"
#include "agent/ground/signals.hpp"
#include "agent/hooks/hooks.hpp"
#include "agent/process/entrypoint.hpp"
#include "base/log.hpp"
#include "http/server.hpp"
#include "net/task.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <exception>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::chrono::milliseconds kTermGrace{1'000};
constexpr std::chrono::milliseconds kKillGrace{1'000};
constexpr std::chrono::milliseconds kPoll{20};
constexpr std::chrono::hours kSweepEvery{1};
constexpr std::chrono::seconds kLogEvery{10};

/// What the environment says in place of flags (execd contract 1.1): an agent in a slot has none.
void take_environment(AgentOptions& options) {
    for (const auto& [name, value] : options.environment) {
        if (name == "JUPYTER_HOST" && options.jupyter_host.empty()) options.jupyter_host = value;
        if (name == "OPENSANDBOX_LIFECYCLE" && options.hooks.empty()) options.hooks = value;
        if (name == "JUPYTER_TOKEN" && options.jupyter_token.empty()) options.jupyter_token = value;
    }
}

/// One agent from its start to its end.
class Agent {
  public:
    explicit Agent(AgentOptions options)
        : options_(std::move(options)),
          services_(loop_.get_executor(), options_),
          output_log_(std::move(options_.output_log)),
          hooks_(services_.processes, options_.inherit_output, output_log_) {}
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;
    ~Agent() {
        // Requests cut short still refer to the services: they go first.
        services_.files.finish();
        loop_.shutdown();
    }

    int run() {
        Status ready = prepare();
        if (ready) ready = listen();
        if (ready) ready = hooks_.configure(options_.hooks);
        if (ready && hooks_.has_pre_start()) {
            net::spawn(services_.executor, begin_after_hook(), "preStart hook");
        } else if (!begin(ready)) {
            return exit_code_;
        }
        loop_.run();
        return exit_code_;
    }

  private:
    Awaitable<void> begin_after_hook() {
        auto ready = co_await hooks_.pre_start();
        if (!begin(std::move(ready))) loop_.stop();
    }

    /// False when the agent ends.
    bool begin(Status ready) {
        if (ready && options_.init && !options_.entrypoint.empty()) ready = start_entrypoint();
        if (options_.on_ready) options_.on_ready(ready);
        if (!ready) {
            log::error("agent cannot start", {{"error", ready.error().message()}});
            exit_code_ = start_failure_code(ready.error());
            return false;
        }
        services_.drivers.adopt(std::move(options_.warm));
        // Whoever ended before anybody listened.
        if (services_.reaper.collect()) asio::post(loop_, [this] { signalled(SIGCHLD); });
        hooks_.start_periodic();
        net::spawn(services_.executor, sweep(), "retention sweep");
        if (services_.environment.get("OPENSANDBOX_WARM_PYTHON") == "1") {
            services_.drivers.warm_python();
        }
        if (options_.log_file) net::spawn(services_.executor, watch_log(), "log rotation");
        services_.telemetry.start();
        return true;
    }

    /// Settings of this process: signals, rights of new files, directory, who may look into it.
    Status prepare() {
        Result<IsolationConfig> isolation = IsolationConfig::load(options_.isolation_config);
        if (!isolation) return isolation.error();
        services_.isolation.configure(std::move(*isolation));
        // The threads for files come and go; an arena each would stay.
        ::mallopt(M_ARENA_MAX, 1);
        auto signals = Signals::take(services_.executor, [this](int number) { signalled(number); });
        if (!signals) return signals.error();
        signals_ = std::move(*signals);
        ::umask(022);
        const std::string& directory = options_.working_directory;
        if (directory.empty() || ::chdir(directory.c_str()) != 0) {
            if (::chdir("/") != 0) return Error::from_errno(errno, "chdir /");
        }
        if (options_.init || !options_.access_token.empty()) ::prctl(PR_SET_DUMPABLE, 0);
        // Orphans of commands come to whoever can reap them, entrypoint or not.
        if (::getpid() != 1) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        return {};
    }

    Status listen() {
        auto listener = open_listener();
        if (!listener) return listener.error();
        server_.emplace(services_.executor, make_handler(services_));
        server_->serve(std::move(*listener));
        return publish(services_.executor, std::move(options_.publications));
    }

    Result<std::unique_ptr<net::Listener>> open_listener() {
        if (options_.listener) {
            return net::adopt_listener(services_.executor, std::move(options_.listener));
        }
        auto listener = net::listen_tcp(services_.executor, options_.host, options_.port);
        if (listener || options_.host != "::") return listener;
        auto narrower = net::listen_tcp(services_.executor, "0.0.0.0", options_.port);
        return narrower ? std::move(narrower) : std::move(listener);
    }

    Status start_entrypoint() {
        auto started = Entrypoint::start(services_.processes, options_.entrypoint,
                                         options_.inherit_output, output_log_);
        if (!started) return started.error();
        entrypoint_ = std::move(*started);
        entrypoint_->child().on_exit([this] {
            entrypoint_->finish_output();
            stop(entrypoint_->child().status()->shell_code());
        });
        return {};
    }

    /// As a shell reports a command that it cannot start.
    [[nodiscard]] int start_failure_code(const Error& error) const {
        if (!options_.init || options_.entrypoint.empty() || !server_) return 1;
        return error.code() == ErrorCode::not_found ? 127 : 126;
    }

    void signalled(int number) {
        if (number == SIGCHLD) {
            if (services_.reaper.collect()) {
                asio::post(loop_, [this] { signalled(SIGCHLD); });
            }
        } else if (entrypoint_ && !entrypoint_->child().status()) {
            // An init passes signals on; what ends it is the end of its entrypoint.
            entrypoint_->child().signal(number);
        } else if (number == SIGTERM || number == SIGINT) {
            stop(0);
        }
    }

    void stop(int exit_code) {
        if (services_.stopping) return;
        services_.stopping = true;
        exit_code_ = exit_code;
        net::spawn(services_.executor, shut_down(), "shutdown");
    }

    /// Ends the commands, which ends their streams with a terminal event, then the connections.
    Awaitable<void> shut_down() {
        net::spawn(services_.executor, end_commands(), "end of commands");
        co_await server_->drain(kTermGrace + kKillGrace);
        while (!commands_ended_)
            co_await net::sleep_for(kPoll);
        co_await services_.telemetry.flush();
        loop_.stop();
    }

    Awaitable<void> end_commands() {
        // At once, so that their streams end while connections are still drained.
        co_await services_.isolation.end_all();
        co_await signal_and_wait(SIGTERM, kTermGrace);
        co_await signal_and_wait(SIGKILL, kKillGrace);
        commands_ended_ = true;
    }

    Awaitable<void> signal_and_wait(int number, std::chrono::milliseconds grace) {
        auto limit = std::chrono::steady_clock::now() + grace;
        std::size_t running = signal_all(number);
        while (running > 0 && std::chrono::steady_clock::now() < limit) {
            co_await net::sleep_for(kPoll);
            running = signal_all(0);
        }
    }

    /// Signals every group that streams wait for; returns how many there are.
    std::size_t signal_all(int number) {
        return services_.commands.signal_all(number) + services_.drivers.signal_all(number) +
               services_.terminals.signal_all(number) + services_.sessions.signal_all(number);
    }

    Awaitable<void> sweep() {
        while (true) {
            co_await net::sleep_for(kSweepEvery);
            services_.commands.sweep(now());
            services_.terminals.sweep(now());
        }
    }

    Awaitable<void> watch_log() {
        while (true) {
            co_await net::sleep_for(kLogEvery);
            if (Status done = options_.log_file->rotate(); !done) {
                log::warn("the log file cannot be changed", {{"error", done.error().message()}});
            }
        }
    }

    AgentOptions options_;
    Loop loop_;
    Services services_;
    OutputLog output_log_;
    Hooks hooks_;
    std::unique_ptr<Signals> signals_;
    std::optional<http::Server> server_;
    std::shared_ptr<Entrypoint> entrypoint_;
    bool commands_ended_ = false;
    int exit_code_ = 0;
};

}  // namespace

int run(AgentOptions options) {
    try {
        take_environment(options);
        Agent agent(std::move(options));
        return agent.run();
    } catch (const std::exception& failure) {
        log::error("agent failed", {{"error", failure.what()}});
        return 1;
    }
}

}  // namespace opensandbox::agent
