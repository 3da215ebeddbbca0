#pragma once

#include "base/error.hpp"

#include <boost/asio/ip/address_v4.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::net {

using Ipv4Address = boost::asio::ip::address_v4;

/// A block of IPv4 addresses in CIDR form, from which sandboxes get theirs: /8 to /28.
class Ipv4Range {
  public:
    static constexpr unsigned kMinPrefix = 8;
    static constexpr unsigned kMaxPrefix = 28;

    /// Reads "10.77.0.0/16". invalid_argument when it is not an address and a prefix length, when
    /// the length is out of bounds, or when bits beyond the prefix are set.
    static Result<Ipv4Range> parse(std::string_view text);

    [[nodiscard]] Ipv4Address network() const { return Ipv4Address(network_); }
    [[nodiscard]] unsigned prefix() const { return prefix_; }
    [[nodiscard]] Ipv4Address netmask() const { return Ipv4Address(mask()); }
    /// How many addresses it holds, the network's and the broadcast address included.
    [[nodiscard]] std::uint32_t size() const { return ~mask() + 1; }
    [[nodiscard]] bool contains(const Ipv4Address& address) const;
    [[nodiscard]] bool overlaps(const Ipv4Range& other) const;
    /// The n-th address, 0 being the network's own; `n` < size().
    [[nodiscard]] Ipv4Address address(std::uint32_t n) const;
    /// "10.77.0.0/16"
    [[nodiscard]] std::string to_string() const;

    friend bool operator==(const Ipv4Range&, const Ipv4Range&) = default;

  private:
    Ipv4Range(std::uint32_t network, unsigned prefix) : network_(network), prefix_(prefix) {}
    [[nodiscard]] std::uint32_t mask() const { return ~std::uint32_t{0} << (32 - prefix_); }

    std::uint32_t network_;
    unsigned prefix_;
};

}  // namespace opensandbox::net
