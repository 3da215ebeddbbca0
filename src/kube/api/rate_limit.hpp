#pragma once

#include <chrono>

namespace opensandbox::kube {

/// How many requests may begin: so many at once, and so many a second in the long run.
struct Rate {
    double per_second = 0;  ///< 0: no limit
    double burst = 0;       ///< below 1 counts as 1

    bool operator==(const Rate&) const = default;
};

/// When each of the requests that come may begin, in the order in which they came. Pure.
class RateLimit {
  public:
    using Clock = std::chrono::steady_clock;
    explicit RateLimit(Rate rate);

    /// How long the next one has to wait at `now`; it is counted.
    Clock::duration take(Clock::time_point now);

  private:
    Rate rate_;
    double free_;  ///< requests that may begin at once; negative: that are ahead of the next
    Clock::time_point seen_{};
};

}  // namespace opensandbox::kube
