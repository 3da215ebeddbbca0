#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace opensandbox::egress {

/// How many lines a source may have written; those beyond are counted.
class LogBudget {
  public:
    using Time = std::chrono::steady_clock::time_point;

    LogBudget(double per_second, double burst)
        : per_second_(per_second), burst_(burst), left_(burst) {}

    /// Whether to write this line; then with how many were left out before it.
    std::optional<std::uint64_t> admit(Time now);
    /// How many were left out since a line was written; they count as told of.
    std::uint64_t take_omitted();

  private:
    double per_second_;
    double burst_;
    double left_;
    std::uint64_t omitted_ = 0;
    std::optional<Time> last_;
};

}  // namespace opensandbox::egress
