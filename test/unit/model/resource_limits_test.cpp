#include "model/resource_limits.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace opensandbox::model;

TEST_CASE("no two limits share a member or a name") {
    std::set<std::string_view> names;
    std::set<std::string_view> records;
    std::set<std::string_view> settings;
    for (const LimitRow& row : kLimits) {
        CHECK(&limit_row(row.member) == &row);
        CHECK_FALSE(row.names.front().empty());
        CHECK_FALSE(row.title.empty());
        CHECK(row.least <= row.most);
        for (const std::string_view name : row.names)
            CHECK((name.empty() || names.insert(name).second));
        CHECK(records.insert(row.record).second);
        CHECK((row.setting.empty() || settings.insert(row.setting).second));
    }
}

TEST_CASE("a limit's range is told in the units that it is written in") {
    CHECK(range_text(limit_row(&ResourceLimits::pids)) == "a count from 16 to 4194304");
    CHECK(range_text(limit_row(&ResourceLimits::open_files)) == "a count from 256 to 1048576");
    CHECK(range_text(limit_row(&ResourceLimits::disk_bytes)) == "a size from 16Mi to 16Ti");
    CHECK(range_text(limit_row(&ResourceLimits::memory_bytes)) == "a size from 6Mi to 1024Ti");
    CHECK(range_text(limit_row(&ResourceLimits::network_rate)) ==
          "bytes a second from 8Ki to 32Gi");
}

TEST_CASE("without request and setting only processes are limited") {
    constexpr ResourceLimits kPreset = preset_limits();
    STATIC_REQUIRE(kPreset.pids == 4096);
    STATIC_REQUIRE(kPreset.memory_bytes == 0);
    STATIC_REQUIRE(kPreset.disk_bytes == 0);
    STATIC_REQUIRE(kPreset.open_files == 0);
}
