#include "telemetry/otlp_metrics.hpp"

#include "base/json_string.hpp"
#include "telemetry/protobuf_writer.hpp"

namespace opensandbox::telemetry {
namespace {

using namespace protobuf;

// Field numbers of opentelemetry/proto/metrics/v1/metrics.proto and its neighbours.
namespace field {
constexpr unsigned kResourceMetrics = 1;
constexpr unsigned kResource = 1;
constexpr unsigned kScopeMetrics = 2;
constexpr unsigned kResourceAttribute = 1;
constexpr unsigned kScope = 1;
constexpr unsigned kMetric = 2;
constexpr unsigned kScopeName = 1;
constexpr unsigned kScopeVersion = 2;
constexpr unsigned kName = 1;
constexpr unsigned kDescription = 2;
constexpr unsigned kUnit = 3;
constexpr unsigned kGauge = 5;
constexpr unsigned kSum = 7;
constexpr unsigned kHistogram = 9;
constexpr unsigned kDataPoint = 1;
constexpr unsigned kTemporality = 2;
constexpr unsigned kIsMonotonic = 3;
constexpr unsigned kStartTime = 2;
constexpr unsigned kTime = 3;
constexpr unsigned kAsDouble = 4;
constexpr unsigned kAsInteger = 6;
constexpr unsigned kNumberAttribute = 7;
constexpr unsigned kCount = 4;
constexpr unsigned kSumValue = 5;
constexpr unsigned kBucketCounts = 6;
constexpr unsigned kBounds = 7;
constexpr unsigned kHistogramAttribute = 9;
constexpr unsigned kKey = 1;
constexpr unsigned kValue = 2;
constexpr unsigned kStringValue = 1;
constexpr unsigned kBooleanValue = 2;
constexpr unsigned kIntegerValue = 3;
}  // namespace field

std::uint64_t nanoseconds(Timestamp time) {
    auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
    return static_cast<std::uint64_t>(since.count());
}

void append_text(std::string& out, unsigned number, std::string_view text) {
    if (is_utf8(text)) append_bytes(out, number, text);
}

void append_attributes(std::string& out, unsigned number, const Attributes& attributes) {
    for (const auto& [key, value] : attributes) {
        std::string encoded;
        if (const auto* text = std::get_if<std::string>(&value)) {
            append_text(encoded, field::kStringValue, *text);
        } else if (const auto* flag = std::get_if<bool>(&value)) {
            append_varint(encoded, field::kBooleanValue, *flag ? 1 : 0);
        } else {
            append_varint(encoded, field::kIntegerValue,
                          static_cast<std::uint64_t>(std::get<std::int64_t>(value)));
        }
        std::string pair;
        append_text(pair, field::kKey, key);
        append_bytes(pair, field::kValue, encoded);
        append_bytes(out, number, pair);
    }
}

}  // namespace

OtlpMetrics::OtlpMetrics(const Attributes& resource, std::string_view scope,
                         std::string_view scope_version, ExportLedger& ledger, Timestamp now)
    : ledger_(ledger) {
    append_attributes(resource_, field::kResourceAttribute, resource);
    append_text(scope_, field::kScopeName, scope);
    append_text(scope_, field::kScopeVersion, scope_version);
    append_fixed64(time_, field::kTime, nanoseconds(now));
    ledger_.begin(now);
}

Temporality OtlpMetrics::temporality() const {
    switch (ledger_.preference()) {
        case TemporalityPreference::cumulative: return Temporality::cumulative;
        case TemporalityPreference::delta: return Temporality::delta;
        case TemporalityPreference::low_memory: break;
    }
    return kind_ == Kind::observed_sum ? Temporality::cumulative : Temporality::delta;
}

bool OtlpMetrics::counts_since_last() const {
    return kind_ != Kind::gauge && temporality() == Temporality::delta;
}

/// The name and what else the metric begins with, then the attributes.
std::string OtlpMetrics::series(const Attributes& attributes) const {
    std::string key = head_;
    append_attributes(key, field::kNumberAttribute, attributes);
    return key;
}

std::string OtlpMetrics::times() const {
    std::string out;
    append_fixed64(out, field::kStartTime, nanoseconds(ledger_.start(temporality())));
    return out += time_;
}

void OtlpMetrics::metric(Kind kind, std::string_view name, std::string_view unit,
                         std::string_view description) {
    end_metric();
    kind_ = kind;
    append_text(head_, field::kName, name);
    append_text(head_, field::kDescription, description);
    append_text(head_, field::kUnit, unit);
}

void OtlpMetrics::point(double value, const Attributes& attributes) {
    if (counts_since_last()) {
        auto added = ledger_.difference(series(attributes), value);
        if (!added) return;
        value = *added;
    }
    std::string encoded;
    append_double(encoded, field::kAsDouble, value);
    number_point(encoded, attributes);
}

void OtlpMetrics::point(std::int64_t value, const Attributes& attributes) {
    if (counts_since_last()) {
        auto added = ledger_.difference(series(attributes), value);
        if (!added) return;
        value = *added;
    }
    std::string encoded;
    append_fixed64(encoded, field::kAsInteger, static_cast<std::uint64_t>(value));
    number_point(encoded, attributes);
}

void OtlpMetrics::number_point(const std::string& value_field, const Attributes& attributes) {
    std::string point = kind_ == Kind::gauge ? time_ : times();
    point += value_field;
    append_attributes(point, field::kNumberAttribute, attributes);
    append_bytes(points_, field::kDataPoint, point);
}

void OtlpMetrics::point(const Histogram& total, const Attributes& attributes) {
    std::optional<Histogram> added;
    if (counts_since_last()) {
        added = ledger_.difference(series(attributes), total);
        if (!added) return;
    }
    const Histogram& histogram = added ? *added : total;
    std::string point = times();
    append_fixed64(point, field::kCount, histogram.count());
    append_double(point, field::kSumValue, histogram.sum());
    std::string counts;
    for (std::uint64_t count : histogram.counts())
        append_element(counts, count);
    append_bytes(point, field::kBucketCounts, counts);
    std::string bounds;
    for (double bound : histogram.bounds())
        append_element(bounds, bound);
    append_bytes(point, field::kBounds, bounds);
    append_attributes(point, field::kHistogramAttribute, attributes);
    append_bytes(points_, field::kDataPoint, point);
}

void OtlpMetrics::end_metric() {
    if (!points_.empty()) {
        unsigned number = field::kGauge;
        if (kind_ != Kind::gauge) {
            append_varint(points_, field::kTemporality, static_cast<std::uint64_t>(temporality()));
        }
        if (kind_ == Kind::sum || kind_ == Kind::observed_sum) {
            append_varint(points_, field::kIsMonotonic, 1);
            number = field::kSum;
        }
        if (kind_ == Kind::histogram) number = field::kHistogram;
        append_bytes(head_, number, points_);
        append_bytes(metrics_, field::kMetric, head_);
    }
    head_.clear();
    points_.clear();
}

std::string OtlpMetrics::finish() {
    end_metric();
    std::string scope_metrics;
    append_bytes(scope_metrics, field::kScope, scope_);
    scope_metrics += metrics_;
    std::string resource_metrics;
    append_bytes(resource_metrics, field::kResource, resource_);
    append_bytes(resource_metrics, field::kScopeMetrics, scope_metrics);
    std::string body;
    append_bytes(body, field::kResourceMetrics, resource_metrics);
    return body;
}

}  // namespace opensandbox::telemetry
