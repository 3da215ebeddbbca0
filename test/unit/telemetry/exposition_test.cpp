#include "telemetry/exposition.hpp"

#include "telemetry/process_figures.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace opensandbox::telemetry;

TEST_CASE("an observation on a bound counts in that bucket") {
    constexpr std::array kBounds{1.0, 5.0};
    Histogram histogram(kBounds);
    for (double value : {0.5, 1.0, 1.1, 5.0, 6.0})
        histogram.observe(value);
    REQUIRE(histogram.counts() == std::vector<std::uint64_t>{2, 2, 1});
    REQUIRE(histogram.count() == 5);
    REQUIRE(histogram.sum() == Approx(13.6));
}

TEST_CASE("histograms are written cumulative, with sum and count") {
    constexpr std::array kBounds{0.5, 10.0};
    Histogram histogram(kBounds);
    histogram.observe(0.25);
    histogram.observe(11);
    Exposition out;
    out.metric("took_seconds", "histogram", "How long.");
    out.histogram(histogram, {{"route", "/a"}});
    REQUIRE(out.text() ==
            "# HELP took_seconds How long.\n"
            "# TYPE took_seconds histogram\n"
            "took_seconds_bucket{route=\"/a\",le=\"0.5\"} 1\n"
            "took_seconds_bucket{route=\"/a\",le=\"10\"} 1\n"
            "took_seconds_bucket{route=\"/a\",le=\"+Inf\"} 2\n"
            "took_seconds_sum{route=\"/a\"} 11.25\n"
            "took_seconds_count{route=\"/a\"} 2\n");
}

TEST_CASE("label values and help are escaped") {
    Exposition out;
    out.metric("m", "gauge", "a\nb\\");
    out.sample(std::uint64_t(1), {{"l", "x\"y\\z\n"}});
    REQUIRE(out.text() == "# HELP m a\\nb\\\\\n# TYPE m gauge\nm{l=\"x\\\"y\\\\z\\n\"} 1\n");
}

TEST_CASE("numbers are written in their shortest form") {
    REQUIRE(format_number(0.1) == "0.1");
    REQUIRE(format_number(3) == "3");
    REQUIRE(format_number(std::numeric_limits<double>::infinity()) == "+Inf");
    REQUIRE(format_number(std::numeric_limits<double>::quiet_NaN()) == "NaN");
}

TEST_CASE("this process has memory, descriptors and a start") {
    auto figures = read_process_figures();
    REQUIRE(figures.resident_bytes > 100'000);
    REQUIRE(figures.open_descriptors >= 3);
    REQUIRE(figures.start_time > 1.6e9);
}
