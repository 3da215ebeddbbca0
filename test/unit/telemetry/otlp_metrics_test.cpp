#include "telemetry/otlp_metrics.hpp"

#include "protobuf_reader.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <map>

using namespace opensandbox;
using namespace opensandbox::telemetry;
using testing::ProtobufReader;

namespace {

constexpr std::array kBounds{1.0, 10.0};
const Timestamp kStart{std::chrono::seconds(1000)};
const Timestamp kNow{std::chrono::seconds(2000)};

OtlpMetrics writer(ExportLedger& ledger, Timestamp now = kNow) {
    return OtlpMetrics({{"service.name", "execd"}, {"number", std::int64_t{-7}}}, "scope", "1.2",
                       ledger, now);
}

ExportLedger cumulative() {
    return {TemporalityPreference::cumulative, kStart};
}

ProtobufReader scope_metrics(const std::string& body) {
    return ProtobufReader(body).message(1).message(2);
}

}  // namespace

TEST_CASE("an OTLP body has one resource and one scope with their attributes") {
    ExportLedger ledger = cumulative();
    OtlpMetrics out = writer(ledger);
    out.metric(OtlpMetrics::Kind::gauge, "g", "%", "what");
    out.point(1.5, {});
    std::string body = out.finish();
    auto resource = ProtobufReader(body).message(1).message(1);
    auto attributes = resource.all(1);
    REQUIRE(attributes.size() == 2);
    ProtobufReader name(attributes[0].bytes);
    CHECK(name.text(1) == "service.name");
    CHECK(name.message(2).text(1) == "execd");
    ProtobufReader number(attributes[1].bytes);
    CHECK(static_cast<std::int64_t>(number.message(2).number(3)) == -7);
    auto scope = scope_metrics(body).message(1);
    CHECK(scope.text(1) == "scope");
    CHECK(scope.text(2) == "1.2");
}

TEST_CASE("OTLP gauges and sums carry times, values and attributes") {
    ExportLedger ledger = cumulative();
    OtlpMetrics out = writer(ledger);
    out.metric(OtlpMetrics::Kind::gauge, "share", "%", "Share");
    out.point(12.5, {{"k", "v"}});
    out.metric(OtlpMetrics::Kind::sum, "bytes", "By", "Bytes");
    out.point(std::int64_t{300}, {{"direction", "in"}});
    out.point(std::int64_t{-1}, {{"direction", "out"}});
    out.metric(OtlpMetrics::Kind::gauge, "empty", "1", "no points, so it is not there");
    auto metrics = scope_metrics(out.finish()).all(2);
    REQUIRE(metrics.size() == 2);

    ProtobufReader share(metrics[0].bytes);
    CHECK(share.text(1) == "share");
    CHECK(share.text(2) == "Share");
    CHECK(share.text(3) == "%");
    auto point = share.message(5).message(1);
    CHECK(point.real(4) == 12.5);
    CHECK(point.number(3) == 2'000'000'000'000);
    CHECK(point.message(7).text(1) == "k");
    CHECK(point.message(7).message(2).text(1) == "v");

    ProtobufReader bytes(metrics[1].bytes);
    auto sum = bytes.message(7);
    CHECK(sum.number(2) == 2);
    CHECK(sum.number(3) == 1);
    auto points = sum.all(1);
    REQUIRE(points.size() == 2);
    ProtobufReader in(points[0].bytes);
    CHECK(in.number(2) == 1'000'000'000'000);
    CHECK(in.number(6) == 300);
    CHECK(static_cast<std::int64_t>(ProtobufReader(points[1].bytes).number(6)) == -1);
}

TEST_CASE("OTLP histograms are cumulative with explicit bounds") {
    Histogram histogram(kBounds);
    for (double value : {0.5, 5.0, 7.0, 100.0})
        histogram.observe(value);
    ExportLedger ledger = cumulative();
    OtlpMetrics out = writer(ledger);
    out.metric(OtlpMetrics::Kind::histogram, "took", "ms", "Took");
    out.point(histogram, {{"result", "success"}});
    auto metric = scope_metrics(out.finish()).message(2);
    auto data = metric.message(9);
    CHECK(data.number(2) == 2);
    auto point = data.message(1);
    CHECK(point.number(4) == 4);
    CHECK(point.real(5) == 112.5);
    CHECK(point.packed(6) == std::vector<std::uint64_t>{1, 2, 1});
    CHECK(point.packed(7) == std::vector<std::uint64_t>{std::bit_cast<std::uint64_t>(1.0),
                                                        std::bit_cast<std::uint64_t>(10.0)});
    CHECK(point.message(9).message(2).text(1) == "success");
}

TEST_CASE("text that is no UTF-8 does not spoil an OTLP body") {
    ExportLedger ledger = cumulative();
    OtlpMetrics out = writer(ledger);
    out.metric(OtlpMetrics::Kind::gauge, "g", "1", "d");
    out.point(1.0, {{"bad", "\xff"}, {"good", "ü"}});
    auto attributes = scope_metrics(out.finish()).message(2).message(5).message(1).all(7);
    REQUIRE(attributes.size() == 2);
    CHECK(ProtobufReader(attributes[0].bytes).message(2).all(1).empty());
    CHECK(ProtobufReader(attributes[1].bytes).message(2).text(1) == "ü");
}

namespace {

struct Point {
    std::uint64_t temporality = 0;
    std::uint64_t from = 0;  ///< seconds
    double value = 0;        ///< a histogram's count
};
bool operator==(const Point& a, const Point& b) {
    return a.temporality == b.temporality && a.from == b.from && a.value == b.value;
}

/// One export of a sum, an observed sum and a histogram; by name.
std::map<std::string, Point> exported(ExportLedger& ledger, int now, std::int64_t sum,
                                      double observed, const Histogram& histogram) {
    OtlpMetrics out = writer(ledger, Timestamp(std::chrono::seconds(now)));
    out.metric(OtlpMetrics::Kind::sum, "sum", "1", "Sum");
    out.point(sum, {{"k", "v"}});
    out.metric(OtlpMetrics::Kind::observed_sum, "observed", "1", "Observed");
    out.point(observed, {});
    out.metric(OtlpMetrics::Kind::histogram, "took", "ms", "Took");
    out.point(histogram, {});
    std::map<std::string, Point> points;
    for (const auto& metric : scope_metrics(out.finish()).all(2)) {
        ProtobufReader reader(metric.bytes);
        const std::string name(reader.text(1));
        auto data = reader.message(name == "took" ? 9 : 7);
        auto point = data.message(1);
        Point& seen = points[name];
        seen.temporality = data.number(2);
        seen.from = point.number(2) / 1'000'000'000;
        seen.value = name == "observed" ? point.real(4)
                                        : static_cast<double>(point.number(name == "sum" ? 6 : 4));
    }
    return points;
}

using Points = std::map<std::string, Point>;

}  // namespace

TEST_CASE("OTLP points count from where the preference says") {
    using Preference = TemporalityPreference;
    constexpr std::uint64_t kDelta = 1;
    constexpr std::uint64_t kTotal = 2;
    auto preference = GENERATE(Preference::cumulative, Preference::delta, Preference::low_memory);
    CAPTURE(static_cast<int>(preference));
    const bool total = preference == Preference::cumulative;
    const bool observed_total = preference != Preference::delta;
    const std::uint64_t mode = total ? kTotal : kDelta;
    const std::uint64_t observed_mode = observed_total ? kTotal : kDelta;
    ExportLedger ledger(preference, kStart);
    Histogram histogram(kBounds);
    histogram.observe(5);
    CHECK(exported(ledger, 2000, 10, 1.5, histogram) ==
          Points{{"sum", {mode, 1000, 10}},
                 {"observed", {observed_mode, 1000, 1.5}},
                 {"took", {mode, 1000, 1}}});
    // The collector did not take that one: it is in the next.
    histogram.observe(50);
    CHECK(exported(ledger, 2001, 13, 2.5, histogram).at("sum") == Point{mode, 1000, 13});
    ledger.taken();
    histogram.observe(50);
    const std::uint64_t from = total ? 1000 : 2001;
    const std::uint64_t observed_from = observed_total ? 1000 : 2001;
    CHECK(exported(ledger, 2002, 14, 4.0, histogram) ==
          Points{{"sum", {mode, from, total ? 14.0 : 1.0}},
                 {"observed", {observed_mode, observed_from, observed_total ? 4.0 : 1.5}},
                 {"took", {mode, from, total ? 3.0 : 1.0}}});
    ledger.taken();
    // What did not change is not told again; what shrank has begun anew.
    CHECK(exported(ledger, 2003, 2, 4.0, histogram).size() == (total ? 3 : observed_total ? 2 : 1));
    ledger.taken();
    CHECK(exported(ledger, 2004, 3, 4.0, histogram).at("sum").value == (total ? 3.0 : 1.0));
}
