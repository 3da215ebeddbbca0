#include "base/clock.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace std::chrono_literals;

TEST_CASE("timestamps are written in UTC with six or no fractional digits") {
    Timestamp whole{std::chrono::seconds(1'767'225'600)};
    CHECK(to_rfc3339(whole) == "2026-01-01T00:00:00Z");
    CHECK(to_rfc3339(whole + 123456us) == "2026-01-01T00:00:00.123456Z");
    CHECK(to_rfc3339(whole + 1us) == "2026-01-01T00:00:00.000001Z");
    CHECK(to_millis(whole + 1999us) == 1'767'225'600'001);
}

TEST_CASE("timestamps are read with any offset and any number of fractional digits") {
    Timestamp base{std::chrono::seconds(1'767'225'600)};
    CHECK(parse_rfc3339("2026-01-01T00:00:00Z") == base);
    CHECK(parse_rfc3339("2026-01-01 00:00:00") == base);
    CHECK(parse_rfc3339("2026-01-01T02:30:00+02:30") == base);
    CHECK(parse_rfc3339("2025-12-31T19:00:00-0500") == base);
    CHECK(parse_rfc3339("2026-01-01T00:00:00.123456789Z") == base + 123456us);
    CHECK(parse_rfc3339("2026-01-01T00:00:00.5Z") == base + 500ms);
}

TEST_CASE("malformed timestamps are refused") {
    for (const char* text :
         {"", "2026", "2026-01-01", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
          "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:00.Z",
          "2026-01-01T00:00:00+25:00", "2026-01-01T00:00:00Zx", "2026/01/01T00:00:00Z"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_rfc3339(text));
    }
}

TEST_CASE("durations are read as Go writes them") {
    CHECK(parse_duration("1s") == 1s);
    CHECK(parse_duration("250ms") == 250ms);
    CHECK(parse_duration("1m30s") == 90s);
    CHECK(parse_duration("1.5h") == 90min);
    CHECK(parse_duration("0") == 0s);
    for (const char* text : {"", "1", "s", "1x", "-1s", "1s2", "99999999999h"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_duration(text));
    }
}
