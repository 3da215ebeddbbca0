#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace opensandbox::telemetry {

/// Counts of observations in fixed buckets. Not thread-safe.
class Histogram {
  public:
    /// Upper bounds, ascending; a last bucket without bound follows them. `bounds` must outlive it.
    explicit Histogram(std::span<const double> bounds)
        : bounds_(bounds), counts_(bounds.size() + 1) {}

    void observe(double value);
    /// What was observed after `before`, an earlier copy of this one.
    [[nodiscard]] Histogram since(const Histogram& before) const;

    [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
    /// One for each bound, then one for the rest; not cumulative.
    [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] double sum() const { return sum_; }

  private:
    std::span<const double> bounds_;
    std::vector<std::uint64_t> counts_;
    std::uint64_t count_ = 0;
    double sum_ = 0;
};

}  // namespace opensandbox::telemetry
