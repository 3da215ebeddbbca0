#include "telemetry/histogram.hpp"

#include <algorithm>

namespace opensandbox::telemetry {

void Histogram::observe(double value) {
    auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    ++counts_[static_cast<std::size_t>(at - bounds_.begin())];
    ++count_;
    sum_ += value;
}

Histogram Histogram::since(const Histogram& before) const {
    Histogram rest = *this;
    for (std::size_t i = 0; i < rest.counts_.size() && i < before.counts_.size(); ++i)
        rest.counts_[i] -= before.counts_[i];
    rest.count_ -= before.count_;
    rest.sum_ -= before.sum_;
    return rest;
}

}  // namespace opensandbox::telemetry
