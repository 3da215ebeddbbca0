#include "net/ipv4_range.hpp"

#include <catch2/catch.hpp>

using opensandbox::ErrorCode;
using opensandbox::net::Ipv4Address;
using opensandbox::net::Ipv4Range;

namespace {

Ipv4Address address(const char* text) {
    return boost::asio::ip::make_address_v4(text);
}

std::string refusal(const char* text) {
    const auto range = Ipv4Range::parse(text);
    REQUIRE_FALSE(range.has_value());
    CHECK(range.error().code() == ErrorCode::invalid_argument);
    return range.error().message();
}

}  // namespace

TEST_CASE("an IPv4 range tells its addresses") {
    const auto range = Ipv4Range::parse("10.77.0.0/16").value();
    CHECK(range.network() == address("10.77.0.0"));
    CHECK(range.prefix() == 16);
    CHECK(range.netmask() == address("255.255.0.0"));
    CHECK(range.size() == 65536);
    CHECK(range.address(1) == address("10.77.0.1"));
    CHECK(range.address(65535) == address("10.77.255.255"));
    CHECK(range.contains(address("10.77.0.0")));
    CHECK(range.contains(address("10.77.255.255")));
    CHECK_FALSE(range.contains(address("10.78.0.0")));
    CHECK_FALSE(range.contains(address("10.76.255.255")));
    CHECK(range.to_string() == "10.77.0.0/16");
}

TEST_CASE("IPv4 ranges of the smallest and largest allowed size are read") {
    CHECK(Ipv4Range::parse("10.0.0.0/8").value().size() == 1U << 24);
    CHECK(Ipv4Range::parse("192.168.1.240/28").value().size() == 16);
}

TEST_CASE("IPv4 ranges overlap when one holds the other") {
    const auto wide = Ipv4Range::parse("10.0.0.0/8").value();
    const auto narrow = Ipv4Range::parse("10.77.0.0/16").value();
    const auto other = Ipv4Range::parse("10.78.0.0/16").value();
    CHECK(wide.overlaps(narrow));
    CHECK(narrow.overlaps(wide));
    CHECK_FALSE(narrow.overlaps(other));
}

TEST_CASE("a bad IPv4 range is refused with the rule that it breaks") {
    CHECK(refusal("10.77.0.0") ==
          "address range \"10.77.0.0\": must be an IPv4 address, a slash and a prefix length");
    CHECK_THAT(refusal("10.77.0/16"), Catch::Contains("before the slash must be an IPv4 address"));
    CHECK_THAT(refusal("fd00::/16"), Catch::Contains("before the slash must be an IPv4 address"));
    CHECK_THAT(refusal("/16"), Catch::Contains("before the slash must be an IPv4 address"));
    CHECK_THAT(refusal("10.77.0.0/"), Catch::Contains("must be a number"));
    CHECK_THAT(refusal("10.77.0.0/1x"), Catch::Contains("must be a number"));
    CHECK_THAT(refusal("10.77.0.0/-9"), Catch::Contains("must be a number"));
    CHECK_THAT(refusal("10.0.0.0/7"), Catch::Contains("from 8 to 28"));
    CHECK_THAT(refusal("10.77.0.0/29"), Catch::Contains("from 8 to 28"));
    CHECK_THAT(refusal("10.77.0.0/4294967304"), Catch::Contains("must be a number"));
    CHECK_THAT(refusal("10.77.0.1/16"), Catch::Contains("beyond the prefix must be zero"));
}
