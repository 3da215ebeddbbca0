#pragma once

#include "base/error.hpp"

#include <boost/asio/ip/address_v6.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::net {

using Ipv6Address = boost::asio::ip::address_v6;

/// A block of private IPv6 addresses (RFC 4193), from which sandboxes get theirs: /64 to /112.
class Ipv6Range {
  public:
    static constexpr unsigned kMinPrefix = 64;
    static constexpr unsigned kMaxPrefix = 112;

    /// Reads "fd77::/64". invalid_argument when it is not an address and a prefix length, when it
    /// is not within fc00::/7, when the length is out of bounds, or when bits beyond the prefix are
    /// set.
    static Result<Ipv6Range> parse(std::string_view text);

    [[nodiscard]] const Ipv6Address& network() const { return network_; }
    [[nodiscard]] unsigned prefix() const { return prefix_; }
    [[nodiscard]] bool contains(const Ipv6Address& address) const;
    /// The n-th address, 0 being the network's own; `n` < 65536, which the longest prefix has room
    /// for.
    [[nodiscard]] Ipv6Address address(std::uint32_t n) const;
    /// "fd77::/64"
    [[nodiscard]] std::string to_string() const;

    friend bool operator==(const Ipv6Range&, const Ipv6Range&) = default;

  private:
    Ipv6Range(const Ipv6Address& network, unsigned prefix) : network_(network), prefix_(prefix) {}

    Ipv6Address network_;
    unsigned prefix_;
};

}  // namespace opensandbox::net
