#include "net/ipv6_range.hpp"

#include <catch2/catch.hpp>

using opensandbox::ErrorCode;
using opensandbox::net::Ipv6Address;
using opensandbox::net::Ipv6Range;

namespace {

Ipv6Address address(const char* text) {
    return boost::asio::ip::make_address_v6(text);
}

std::string refusal(const char* text) {
    const auto range = Ipv6Range::parse(text);
    REQUIRE_FALSE(range.has_value());
    CHECK(range.error().code() == ErrorCode::invalid_argument);
    return range.error().message();
}

}  // namespace

TEST_CASE("an IPv6 range tells its addresses") {
    const auto range = Ipv6Range::parse("fd77:0:0:5::/64").value();
    CHECK(range.network() == address("fd77:0:0:5::"));
    CHECK(range.prefix() == 64);
    CHECK(range.address(1) == address("fd77:0:0:5::1"));
    CHECK(range.address(65'535) == address("fd77:0:0:5::ffff"));
    CHECK(range.contains(address("fd77:0:0:5:1:2:3:4")));
    CHECK_FALSE(range.contains(address("fd77:0:0:4:ffff::")));
    CHECK_FALSE(range.contains(address("fd77:0:0:6::")));
    CHECK(range.to_string() == "fd77:0:0:5::/64");
}

TEST_CASE("a prefix may end within a byte of an IPv6 address") {
    const auto range = Ipv6Range::parse("fd77:0:0:0:8000::/67").value();
    CHECK(range.contains(address("fd77:0:0:0:9fff::")));
    CHECK_FALSE(range.contains(address("fd77:0:0:0:a000::")));
    CHECK(Ipv6Range::parse("fc00:1::1:0/112").value().address(2) == address("fc00:1::1:2"));
}

TEST_CASE("a bad IPv6 range is refused with the rule that it breaks") {
    CHECK_THAT(refusal("fd77::"), Catch::Contains("a slash and a prefix length"));
    CHECK_THAT(refusal("10.77.0.0/64"), Catch::Contains("must be an IPv6 address"));
    CHECK_THAT(refusal("fd77::%1/64"), Catch::Contains("must be an IPv6 address"));
    CHECK_THAT(refusal("2001:db8::/64"), Catch::Contains("within fc00::/7"));
    CHECK_THAT(refusal("fe80::/64"), Catch::Contains("within fc00::/7"));
    CHECK_THAT(refusal("fd77::/63"), Catch::Contains("from 64 to 112"));
    CHECK_THAT(refusal("fd77::/113"), Catch::Contains("from 64 to 112"));
    CHECK_THAT(refusal("fd77::/x"), Catch::Contains("must be a number"));
    CHECK_THAT(refusal("fd77::1/64"), Catch::Contains("beyond the prefix must be zero"));
}
