#pragma once

#include "agent/pty/session.hpp"

#include <unordered_map>

namespace opensandbox::agent {

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
