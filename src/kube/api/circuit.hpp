#pragma once

#include <chrono>

namespace opensandbox::kube {

/// Keeps callers from waiting for an API server that does not answer: after some calls without an
/// answer in a row they fail at once, but for one now and then that finds out whether it is back.
/// Pure.
class Circuit {
  public:
    using Clock = std::chrono::steady_clock;

    /// Whether a call may be tried at `now`. Each yes is followed by answered() or unanswered().
    bool allows(Clock::time_point now);
    void answered() { failures_ = 0; }
    void unanswered(Clock::time_point now);
    [[nodiscard]] bool open() const { return failures_ >= kPatience; }

  private:
    static constexpr unsigned kPatience = 3;
    static constexpr std::chrono::seconds kBetweenTries{1};

    unsigned failures_ = 0;
    Clock::time_point next_try_{};
};

}  // namespace opensandbox::kube
