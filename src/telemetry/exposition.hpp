#pragma once

#include "telemetry/histogram.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::telemetry {

/// Names and values that tell samples of one metric apart.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Writes the Prometheus text format, version 0.0.4.
class Exposition {
  public:
    /// Starts a metric: `type` is "counter", "gauge", "histogram" or "summary".
    void metric(std::string_view name, std::string_view type, std::string_view help);
    /// A sample of the metric started last.
    void sample(double value, const Labels& labels = {});
    void sample(std::uint64_t value, const Labels& labels = {});
    /// All samples of a histogram: cumulative buckets, sum and count.
    void histogram(const Histogram& histogram, const Labels& labels = {});

    /// A summary without quantiles.
    void summary(double sum, std::uint64_t count);

    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    void line(std::string_view suffix, const Labels& labels, std::string_view value);
    std::string name_;
    std::string text_;
};

/// Shortest decimal form that reads back as the same number.
std::string format_number(double value);

}  // namespace opensandbox::telemetry
