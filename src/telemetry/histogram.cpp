#include "telemetry/histogram.hpp"

#include <algorithm>

namespace opensandbox::telemetry {

void Histogram::observe(double value) {
    auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    ++counts_[static_cast<std::size_t>(at - bounds_.begin())];
    ++count_;
    sum_ += value;
}

}  // namespace opensandbox::telemetry
