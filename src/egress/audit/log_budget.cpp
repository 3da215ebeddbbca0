#include "egress/audit/log_budget.hpp"

#include <algorithm>
#include <utility>

namespace opensandbox::egress {

std::optional<std::uint64_t> LogBudget::admit(Time now) {
    if (last_) {
        const std::chrono::duration<double> passed = now - *last_;
        left_ = std::min(burst_, left_ + std::max(0.0, passed.count()) * per_second_);
    }
    last_ = now;
    if (left_ < 1) {
        ++omitted_;
        return std::nullopt;
    }
    left_ -= 1;
    return take_omitted();
}

std::uint64_t LogBudget::take_omitted() {
    return std::exchange(omitted_, 0);
}

}  // namespace opensandbox::egress
