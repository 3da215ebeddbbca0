#include "net/ipv6_range.hpp"

#include <boost/system/error_code.hpp>

#include <algorithm>
#include <cassert>
#include <charconv>

namespace opensandbox::net {

namespace {

Error bad_ipv6_range(std::string_view text, std::string_view rule) {
    return {ErrorCode::invalid_argument,
            "address range \"" + std::string(text) + "\": " + std::string(rule)};
}

/// The address with the bits beyond the prefix cleared.
Ipv6Address cut(const Ipv6Address& address, unsigned prefix) {
    auto bytes = address.to_bytes();
    for (unsigned i = 0; i < bytes.size(); ++i) {
        const unsigned kept = prefix > i * 8 ? std::min(prefix - i * 8, 8U) : 0;
        bytes[i] = static_cast<unsigned char>(bytes[i] & (0xff00U >> kept));
    }
    return Ipv6Address(bytes);
}

}  // namespace

Result<Ipv6Range> Ipv6Range::parse(std::string_view text) {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos)
        return bad_ipv6_range(text, "must be an IPv6 address, a slash and a prefix length");

    boost::system::error_code failed;
    const auto address =
        boost::asio::ip::make_address_v6(std::string(text.substr(0, slash)), failed);
    if (failed || address.scope_id() != 0)
        return bad_ipv6_range(text, "the part before the slash must be an IPv6 address");
    if ((address.to_bytes()[0] & 0xfe) != 0xfc)
        return bad_ipv6_range(text, "must be a private network, within fc00::/7");

    const auto digits = text.substr(slash + 1);
    unsigned prefix = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (error != std::errc{} || end != digits.data() + digits.size())
        return bad_ipv6_range(text, "the prefix length must be a number");
    if (prefix < kMinPrefix || prefix > kMaxPrefix)
        return bad_ipv6_range(text, "the prefix length must be from 64 to 112");
    if (cut(address, prefix) != address)
        return bad_ipv6_range(text, "address bits beyond the prefix must be zero");
    return Ipv6Range(address, prefix);
}

bool Ipv6Range::contains(const Ipv6Address& address) const {
    return cut(address, prefix_) == network_;
}

Ipv6Address Ipv6Range::address(std::uint32_t n) const {
    assert(n <= 0xffff);
    auto bytes = network_.to_bytes();
    bytes[14] = static_cast<unsigned char>(n >> 8);
    bytes[15] = static_cast<unsigned char>(n & 0xff);
    return Ipv6Address(bytes);
}

std::string Ipv6Range::to_string() const {
    return network_.to_string() + "/" + std::to_string(prefix_);
}

}  // namespace opensandbox::net
