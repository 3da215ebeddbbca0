#pragma once

#include "base/clock.hpp"
#include "telemetry/export_ledger.hpp"
#include "telemetry/histogram.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace opensandbox::telemetry {

using AttributeValue = std::variant<std::string, std::int64_t, bool>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

/// Writes the protobuf body of an OTLP/HTTP metrics export (opentelemetry-proto 1, an
/// ExportMetricsServiceRequest): one resource, one scope, sums and histograms that count from where
/// the ledger says. Text that is no UTF-8 is left out, as receivers would refuse the whole body.
class OtlpMetrics {
  public:
    /// Every point is of the time `now`. `ledger` is borrowed, and told when the body was taken.
    OtlpMetrics(const Attributes& resource, std::string_view scope, std::string_view scope_version,
                ExportLedger& ledger, Timestamp now);

    enum class Kind : unsigned char {
        gauge,
        sum,           ///< counted here
        observed_sum,  ///< a total that is read from elsewhere
        histogram,
    };
    /// Starts a metric; the points that follow belong to it. Sums are monotonic. Points are totals.
    void metric(Kind kind, std::string_view name, std::string_view unit,
                std::string_view description);
    /// A point of a gauge or sum.
    void point(double value, const Attributes& attributes);
    void point(std::int64_t value, const Attributes& attributes);
    /// A point of a histogram.
    void point(const Histogram& total, const Attributes& attributes);

    /// The body; nothing can be added after it. A metric without points is not in it.
    std::string finish();

  private:
    void number_point(const std::string& value_field, const Attributes& attributes);
    [[nodiscard]] Temporality temporality() const;
    [[nodiscard]] bool counts_since_last() const;
    [[nodiscard]] std::string series(const Attributes& attributes) const;
    [[nodiscard]] std::string times() const;
    void end_metric();

    std::string resource_;
    std::string scope_;
    ExportLedger& ledger_;
    std::string time_;     ///< encoded, of every point
    std::string metrics_;  ///< those that are complete
    Kind kind_ = Kind::gauge;
    std::string head_;    ///< of the metric begun
    std::string points_;  ///< of the metric begun
};

}  // namespace opensandbox::telemetry
