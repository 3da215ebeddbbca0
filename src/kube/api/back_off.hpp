#pragma once

#include <chrono>
#include <random>

namespace opensandbox::kube {

/// Pauses between tries that fail: each is up to twice as long as the one before, and by chance
/// shorter, so that many who fail at once do not come back at once.
class BackOff {
  public:
    using Pause = std::chrono::milliseconds;
    struct Limits {
        Pause first{100};
        Pause longest{30'000};
    };
    BackOff(Limits limits, unsigned seed) : limits_(limits), next_(limits.first), chance_(seed) {}

    /// The pause before the next try: from half of its limit to all of it.
    Pause next();
    /// It went well: the next pause is the first again.
    void reset() { next_ = limits_.first; }

  private:
    Limits limits_;
    Pause next_;
    std::minstd_rand chance_;
};

}  // namespace opensandbox::kube
