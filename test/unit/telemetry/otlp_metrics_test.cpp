#include "telemetry/otlp_metrics.hpp"

#include "protobuf_reader.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace opensandbox;
using namespace opensandbox::telemetry;
using testing::ProtobufReader;

namespace {

constexpr std::array kBounds{1.0, 10.0};
const Timestamp kStart{std::chrono::seconds(1000)};
const Timestamp kNow{std::chrono::seconds(2000)};

OtlpMetrics writer() {
    return OtlpMetrics({{"service.name", "execd"}, {"number", std::int64_t{-7}}}, "scope", "1.2",
                       kStart, kNow);
}

ProtobufReader scope_metrics(const std::string& body) {
    return ProtobufReader(body).message(1).message(2);
}

}  // namespace

TEST_CASE("an OTLP body has one resource and one scope with their attributes") {
    OtlpMetrics out = writer();
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
    OtlpMetrics out = writer();
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
    OtlpMetrics out = writer();
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
    OtlpMetrics out = writer();
    out.metric(OtlpMetrics::Kind::gauge, "g", "1", "d");
    out.point(1.0, {{"bad", "\xff"}, {"good", "ü"}});
    auto attributes = scope_metrics(out.finish()).message(2).message(5).message(1).all(7);
    REQUIRE(attributes.size() == 2);
    CHECK(ProtobufReader(attributes[0].bytes).message(2).all(1).empty());
    CHECK(ProtobufReader(attributes[1].bytes).message(2).text(1) == "ü");
}
