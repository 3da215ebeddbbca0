#include "cli/duration.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::cli;
using namespace std::chrono_literals;

TEST_CASE("durations are seconds, or numbers with units from long to short") {
    CHECK(parse_duration_text("90") == 90s);
    CHECK(parse_duration_text("30s") == 30s);
    CHECK(parse_duration_text("10m") == 10min);
    CHECK(parse_duration_text("1h30m45s") == 1h + 30min + 45s);
    CHECK(parse_duration_text("500ms") == 500ms);
    CHECK(parse_duration_text("1s500ms") == 1500ms);
    CHECK(parse_duration_text("2d") == 48h);
}

TEST_CASE("what is no duration is refused") {
    for (const char* text : {"", "soon", "0", "0s", "-5", "-5s", "5x", "m", "1m2h", "1m1m", "30s5",
                             "1.5h", "10 m", "99999999999999999999", "9999999d", " 5", "5 "}) {
        CAPTURE(text);
        CHECK_FALSE(parse_duration_text(text));
    }
}

TEST_CASE("lifetimes read like a clock") {
    CHECK(to_clock_text(600s) == "0:10:00");
    CHECK(to_clock_text(3661s) == "1:01:01");
    CHECK(to_clock_text(24h) == "1 day, 0:00:00");
    CHECK(to_clock_text(50h) == "2 days, 2:00:00");
}
