#pragma once

#include "base/clock.hpp"
#include "telemetry/histogram.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opensandbox::telemetry {

/// From when points count (OpenTelemetry metrics data model).
enum class Temporality : std::uint8_t {
    delta = 1,       ///< the last export
    cumulative = 2,  ///< the start of the process
};

/// What OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE asks for.
enum class TemporalityPreference : std::uint8_t {
    cumulative,
    delta,
    /// Delta for what is counted here, cumulative for totals that are read from elsewhere.
    low_memory,
};

/// What a collector has taken of each series, so that an export can say what came since. What it
/// did not take is in the next export.
class ExportLedger {
  public:
    /// Everything counts from `start` at first.
    ExportLedger(TemporalityPreference preference, Timestamp start)
        : preference_(preference), start_(start), since_(start) {}

    [[nodiscard]] TemporalityPreference preference() const { return preference_; }
    [[nodiscard]] Timestamp start(Temporality temporality) const {
        return temporality == Temporality::delta ? since_ : start_;
    }

    /// An export of the time `now` is written.
    void begin(Timestamp now);
    /// The collector has the export that was begun last.
    void taken();

    /// What came since the last export that was taken; empty when nothing did, but for a series
    /// that no export had before. A total that shrank has begun anew. `series` tells it apart.
    std::optional<std::int64_t> difference(std::string_view series, std::int64_t total);
    std::optional<double> difference(std::string_view series, double total);
    std::optional<Histogram> difference(std::string_view series, const Histogram& total);

  private:
    struct Seen {
        std::int64_t whole = 0;
        double real = 0;
        std::optional<Histogram> histogram;
    };
    using Series = std::unordered_map<std::string, Seen>;
    /// What the last export had of the series; null when there was none.
    const Seen* note(std::string_view series, Seen total);

    TemporalityPreference preference_;
    Timestamp start_;
    Timestamp since_;  ///< the last export that was taken
    Series last_;
    std::optional<Series> begun_;
    Timestamp begun_at_{};
};

}  // namespace opensandbox::telemetry
