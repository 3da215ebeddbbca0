#include "agent/isolated/broker_settings.hpp"

#include "agent/isolated/walls.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;

namespace {

Result<BrokerSettings> parse(std::string_view text) {
    return parse_broker_settings(text);
}

}  // namespace

TEST_CASE("isolated: what an agent tells its broker arrives", "[isolated]") {
    BrokerSettings settings;
    settings.uid = 1000;
    settings.gid = 65534;
    settings.environment = {{"A", "1"}, {"EMPTY", ""}, {"LINES", "a\nb=c"}};
    auto read = parse(encode(settings));
    REQUIRE(read.has_value());
    CHECK(read->uid == 1000);
    CHECK(read->gid == 65534);
    CHECK(read->environment == settings.environment);
}

TEST_CASE("isolated: settings that are none are refused", "[isolated]") {
    using namespace std::string_view_literals;
    CHECK(parse("0\0000\000"sv).has_value());
    for (std::string_view text :
         {""sv, "0"sv, "0\000"sv, "0\0000"sv, "\0000\000"sv, "-1\0000\000"sv,
          "0\0004294967295\000"sv, "4294967296\0000\000"sv, "1x\0000\000"sv, "0\0000\000A=1"sv,
          "0\0000\000A\000"sv, "0\0000\000=1\000"sv, "0\0000\000\000"sv}) {
        INFO(std::string(text));
        auto read = parse(text);
        REQUIRE_FALSE(read.has_value());
        CHECK(read.error().code() == ErrorCode::invalid_argument);
    }
    std::string many(std::string("0\0000\000", 4));
    for (int i = 0; i <= 10'000; ++i)
        many += std::string("A=\000", 3);
    CHECK_FALSE(parse(many).has_value());
}

TEST_CASE("isolated: what a broker runs keeps to the sandbox's limits", "[isolated]") {
    IsolationConfig config;
    config.filter.push_back({});
    config.capabilities = 0b1011;
    config.kept_capabilities = 0b0110;
    // Not even by a setting that leaves out the agent's own filter.
    for (bool hardening : {true, false}) {
        config.hardening = hardening;
        auto strict = walls_of(IsolationProfile::strict, config);
        REQUIRE(strict.has_value());
        CHECK(strict->capabilities == 0b0010);
        CHECK(strict->filter.size() == 1);
        auto balanced = walls_of(IsolationProfile::balanced, config);
        REQUIRE(balanced.has_value());
        CHECK((balanced->capabilities & ~std::uint64_t{0b1011}) == 0);
    }
}
