#pragma once

#include <algorithm>
#include <chrono>

namespace opensandbox::egress::dns {

/// A token bucket. The first use finds it full.
class RateLimit {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// False when more than `burst` come at once or more than `per_second` in the long run; a rate
    /// of 0 admits all.
    bool admit(double per_second, double burst, Time now) {
        if (per_second <= 0) return true;
        if (last_ == Time()) {
            tokens_ = burst;
        } else {
            const std::chrono::duration<double> passed = now - last_;
            tokens_ = std::min(burst, tokens_ + passed.count() * per_second);
        }
        last_ = now;
        if (tokens_ < 1) return false;
        tokens_ -= 1;
        return true;
    }
    [[nodiscard]] Time last() const { return last_; }

  private:
    Time last_;
    double tokens_ = 0;
};

}  // namespace opensandbox::egress::dns
