#pragma once

#include "agent/process/process_context.hpp"
#include "agent/pty/process.hpp"
#include "base/clock.hpp"
#include "net/task.hpp"

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace opensandbox::agent {

class PtyClient;

/// What a session runs.
struct PtyShell {
    std::string directory;  ///< absolute; empty for the agent's own
    std::string command;    ///< empty for an interactive shell
};

/// A shell that lives on while clients come and go (execd contract 8). One client at a time holds
/// it; its output goes into the replay buffer first and from there to the client, which so slows
/// the shell down when it is slow itself. Viewers beside it only read, and slow nothing down.
class PtySession : public std::enable_shared_from_this<PtySession> {
  public:
    /// Output that is kept for replay. A frame of all of it and its head is 1 MiB, the most that
    /// common WebSocket clients accept.
    static constexpr std::size_t kKept = (std::size_t{1} << 20) - 9;

    static constexpr std::size_t kMaxViewers = 16;

    /// The context is borrowed.
    PtySession(const ProcessContext& context, std::string id, PtyShell shell);
    PtySession(const PtySession&) = delete;
    PtySession& operator=(const PtySession&) = delete;

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] bool running() const { return process_ && !process_->ended(); }
    [[nodiscard]] const Replay& output() const { return output_; }
    /// Null while nothing runs.
    [[nodiscard]] const std::shared_ptr<PtyProcess>& process() const { return process_; }
    [[nodiscard]] PtyProcess::Mode mode() const { return mode_; }
    [[nodiscard]] bool removed() const { return removed_; }

    /// The session is the client's; false when another has it.
    bool take(const std::shared_ptr<PtyClient>& client);
    /// Ends the client that has it and waits for that, at most five seconds. Of several that wait
    /// the last one gets it; the others are ended as if they had had it.
    Awaitable<bool> take_over(std::shared_ptr<PtyClient> client);
    /// The client reads along; false when nothing runs or there are kMaxViewers.
    bool watch(const std::shared_ptr<PtyClient>& client);
    void leave(const PtyClient& client);

    /// Starts the shell unless it runs, or its end is still to be told.
    Status start(PtyProcess::Mode mode);
    /// Whether a start was tried, and whether the last one failed.
    [[nodiscard]] bool launch_attempted() const { return launch_attempted_; }
    [[nodiscard]] bool launch_failed() const { return launch_failed_; }
    /// How the shell ended, once all of its output is in the replay buffer and until a client knows
    /// about it.
    [[nodiscard]] const std::optional<int>& exit_code() const { return exit_code_; }
    void exit_told() { exit_code_.reset(); }
    /// The client has taken some output.
    void output_taken();

    /// SIGKILL; no client can take the session any more.
    void remove();
    /// Whether it may be forgotten: nothing runs and nobody has it.
    [[nodiscard]] bool idle() const { return !process_ && !client_; }
    [[nodiscard]] bool ended() const { return idle() && output_.total() + runs_ > 0; }
    [[nodiscard]] Timestamp idle_since() const { return idle_since_; }

  private:
    Status launch(PtyProcess::Mode mode);
    [[nodiscard]] Result<SpawnRequest> prepare(PtyProcess::Mode mode) const;
    static Awaitable<void> collect_output(std::shared_ptr<PtySession> session,
                                          std::shared_ptr<PtyProcess> process);
    void read_output(PtyProcess& process);
    void tell_output();
    [[nodiscard]] bool client_behind() const;

    const ProcessContext& context_;
    std::string id_;
    PtyShell shell_;
    Replay output_{kKept};
    std::shared_ptr<PtyProcess> process_;
    PtyProcess::Mode mode_ = PtyProcess::Mode::terminal;
    std::size_t runs_ = 0;
    bool launch_attempted_ = false;
    bool launch_failed_ = false;
    std::optional<int> exit_code_;
    std::shared_ptr<PtyClient> client_;
    std::vector<std::shared_ptr<PtyClient>> viewers_;
    std::uint64_t takeovers_ = 0;       ///< asked for so far
    std::shared_ptr<net::Event> work_;  ///< output came, a client took some or left
    asio::steady_timer left_;           ///< cancelled to wake all who wait for the session
    bool removed_ = false;
    Timestamp idle_since_ = now();
};

/// The terminal sessions of this agent. One whose shell ended (or was never started) and that
/// nobody is connected to is kept for a day.
class PtySessions {
  public:
    static constexpr std::size_t kMax = 100;
    static constexpr std::chrono::hours kRetention{24};

    /// The context is borrowed.
    explicit PtySessions(const ProcessContext& context) : context_(context) {}

    /// Nothing is started yet. When there are kMax, the one that ended first makes room;
    /// `resource_exhausted` when none has ended.
    Result<std::shared_ptr<PtySession>> create(PtyShell shell);
    [[nodiscard]] std::shared_ptr<PtySession> find(const std::string& id) const;
    /// Ends the session; false when there is none.
    bool remove(const std::string& id);
    /// Forgets what was idle for longer than kRetention at `time`.
    void sweep(Timestamp time);
    /// Sends a signal to every shell that runs; returns how many there are. Interactive shells
    /// ignore SIGTERM, so that SIGHUP goes before it.
    std::size_t signal_all(int number) const;

  private:
    bool forget_oldest();

    const ProcessContext& context_;
    std::unordered_map<std::string, std::shared_ptr<PtySession>> sessions_;
};

}  // namespace opensandbox::agent
