#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace opensandbox::agent {

/// How a process ended.
struct ExitStatus {
    int code = 0;    ///< exit code, meaningless when a signal ended it
    int signal = 0;  ///< the signal, or 0
    bool core = false;

    [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
    /// The code that clients see: -1 when a signal ended the process.
    [[nodiscard]] int client_code() const { return signal != 0 ? -1 : code; }
    /// The code that a shell would report: 128 and the signal.
    [[nodiscard]] int shell_code() const { return signal != 0 ? 128 + signal : code; }
    /// "exit status 2", "signal: killed" (execd contract 3.2).
    [[nodiscard]] std::string describe() const;
};

class Reaper;

/// A process that this agent started as the leader of its own group. Signals are sent only while it
/// was not reaped, so neither its number nor its group's can belong to anyone else.
class Child {
  public:
    explicit Child(pid_t pid) : pid_(pid) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Set once it ended.
    [[nodiscard]] const std::optional<ExitStatus>& status() const { return status_; }
    /// Called when it ended (at once when it already has), on the event loop.
    void on_exit(std::function<void()> listener);
    /// False when it was reaped already or the kernel refused.
    bool signal(int number) const;
    bool signal_group(int number) const;

  private:
    friend class Reaper;
    void finish(ExitStatus status);

    pid_t pid_;
    std::optional<ExitStatus> status_;
    bool reaped_ = false;
    int holds_ = 0;
    std::vector<std::function<void()>> listeners_;
};

/// The only caller of wait in the process: collects every child that ended, ours and (as init)
/// orphans, and tells those who watch.
class Reaper {
  public:
    /// Watches a child that was just started, before the event loop runs again.
    std::shared_ptr<Child> watch(pid_t pid);
    /// Collects children that ended; called on SIGCHLD. True when it stopped at kMaxAtOnce of them
    /// and wants to be called again, so that a storm of ending processes leaves time for others.
    bool collect();
    static constexpr int kMaxAtOnce = 256;

    /// While one exists the child stays a zombie after its end, so that its group can still be
    /// signalled.
    class Hold {
      public:
        Hold(Reaper& reaper, std::shared_ptr<Child> child);
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;
        ~Hold();

      private:
        Reaper& reaper_;
        std::shared_ptr<Child> child_;
    };

    /// Children that were not reaped yet.
    [[nodiscard]] std::size_t watched() const { return children_.size(); }

  private:
    bool collect_one(pid_t pid);
    bool collect_any();

    std::unordered_map<pid_t, std::shared_ptr<Child>> children_;
    std::size_t held_ = 0;  ///< ended children that are kept as zombies
};

/// Whether any process of this group is alive (not a zombie), read from /proc; false when /proc
/// cannot be read.
bool group_has_living_member(pid_t group);

}  // namespace opensandbox::agent
