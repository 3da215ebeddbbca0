#include "net/ipv4_range.hpp"

#include <boost/system/error_code.hpp>

#include <cassert>
#include <charconv>

namespace opensandbox::net {

namespace {

Error bad_range(std::string_view text, std::string_view rule) {
    return {ErrorCode::invalid_argument,
            "address range \"" + std::string(text) + "\": " + std::string(rule)};
}

}  // namespace

Result<Ipv4Range> Ipv4Range::parse(std::string_view text) {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos)
        return bad_range(text, "must be an IPv4 address, a slash and a prefix length");

    boost::system::error_code failed;
    const auto address =
        boost::asio::ip::make_address_v4(std::string(text.substr(0, slash)), failed);
    if (failed) return bad_range(text, "the part before the slash must be an IPv4 address");

    const auto digits = text.substr(slash + 1);
    unsigned prefix = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (error != std::errc{} || end != digits.data() + digits.size())
        return bad_range(text, "the prefix length must be a number");
    if (prefix < kMinPrefix || prefix > kMaxPrefix)
        return bad_range(text, "the prefix length must be from 8 to 28");

    const Ipv4Range range(address.to_uint(), prefix);
    if ((range.network_ & ~range.mask()) != 0)
        return bad_range(text, "address bits beyond the prefix must be zero");
    return range;
}

bool Ipv4Range::contains(const Ipv4Address& address) const {
    return (address.to_uint() & mask()) == network_;
}

bool Ipv4Range::overlaps(const Ipv4Range& other) const {
    return contains(other.network()) || other.contains(network());
}

Ipv4Address Ipv4Range::address(std::uint32_t n) const {
    assert(n < size());
    return Ipv4Address(network_ + n);
}

std::string Ipv4Range::to_string() const {
    return network().to_string() + "/" + std::to_string(prefix_);
}

}  // namespace opensandbox::net
