#pragma once

#include "agent/process/process_context.hpp"
#include "agent/session/session_run.hpp"
#include "agent/session/shell_program.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace opensandbox::agent {

/// Bytes of state that all sessions of an agent keep together.
class StateBudget {
  public:
    static constexpr std::size_t kLimit = std::size_t{64} << 20;
    /// Makes room for `now` bytes where `before` were; false when there is none.
    bool replace(std::size_t before, std::size_t now) {
        if (now > before && used_ - before + now > kLimit) return false;
        used_ = used_ - before + now;
        return true;
    }

  private:
    std::size_t used_ = 0;
};

/// Is told of every run that ended or could not be started; may be empty.
using RunObserver = std::function<void(const SessionRun&)>;

/// A bash session (execd contract 4): what one run's shell leaves (variables, functions, aliases,
/// options, umask, directory) the next one begins with. Between runs there is no process. One run
/// at a time, the others wait in order.
class Session : public std::enable_shared_from_this<Session> {
  public:
    /// Runs that may wait for the one that is running.
    static constexpr std::size_t kMaxWaiting = 64;

    /// `directory` is absolute: where its first run begins. The others are borrowed.
    Session(const ProcessContext& context, StateBudget& budget, const RunObserver& observer,
            std::string id, std::string directory);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session();

    [[nodiscard]] const std::string& id() const { return id_; }
    /// Starts a run, now or when those before it have ended. `resource_exhausted` when too many
    /// wait.
    Result<std::shared_ptr<SessionRun>> add(SessionRequest request, LineForm form);
    /// Nobody reads this run any more: it is killed, or never started.
    void abandon(const std::shared_ptr<SessionRun>& run);
    /// Kills what runs and ends every stream; no run may follow.
    void close();
    /// Signals the group of the shell that runs; false when there is none.
    bool signal_group(int number) const { return current_ && current_->signal_group(number); }

  private:
    void start_next();
    Status start(const std::shared_ptr<SessionRun>& run);
    Result<SpawnRequest> prepare_shell(SessionRun& run, ShellProgram& program);
    void finished(const std::shared_ptr<SessionRun>& run);
    void keep(SessionRun& run);
    void measure(const SessionRun& run) const;

    const ProcessContext& context_;
    StateBudget& budget_;
    const RunObserver& observer_;
    std::string id_;
    std::string directory_;
    std::optional<ShellKind> kind_;
    std::optional<ShellState> state_;
    Environment::Pairs applied_;   ///< of the EXECD_ENVS file, as of the state
    Environment::Pairs applying_;  ///< by the run that is running
    std::string mark_;
    std::shared_ptr<SessionRun> current_;
    std::deque<std::shared_ptr<SessionRun>> waiting_;
    bool closed_ = false;
};

/// The bash sessions of one agent. They stay until they are deleted.
class SessionTable {
  public:
    static constexpr std::size_t kMaxSessions = 1000;

    /// The context is borrowed.
    explicit SessionTable(const ProcessContext& context) : context_(context) {}

    void observe(RunObserver observer) { observer_ = std::move(observer); }

    /// A new session that begins in `directory`, which is absolute and exists. `resource_exhausted`
    /// when there are too many.
    Result<std::shared_ptr<Session>> create(std::string directory);
    [[nodiscard]] std::shared_ptr<Session> find(const std::string& id) const;
    /// Kills what runs in it and forgets it; false when there is none of this id.
    bool erase(const std::string& id);
    /// Sends a signal to every shell that runs; returns how many there are.
    std::size_t signal_all(int number) const;

  private:
    const ProcessContext& context_;
    StateBudget budget_;
    RunObserver observer_;
    std::unordered_map<std::string, std::shared_ptr<Session>> sessions_;
};

}  // namespace opensandbox::agent
