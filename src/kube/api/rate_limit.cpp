#include "kube/api/rate_limit.hpp"

#include <algorithm>

namespace opensandbox::kube {

RateLimit::RateLimit(Rate rate) : rate_(rate), free_(std::max(rate.burst, 1.0)) {}

RateLimit::Clock::duration RateLimit::take(Clock::time_point now) {
    if (rate_.per_second <= 0) return {};
    if (seen_ != Clock::time_point{}) {
        const std::chrono::duration<double> passed = now - seen_;
        free_ = std::min(free_ + passed.count() * rate_.per_second, std::max(rate_.burst, 1.0));
    }
    seen_ = now;
    free_ -= 1;
    if (free_ >= 0) return {};
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(-free_ / rate_.per_second));
}

}  // namespace opensandbox::kube
