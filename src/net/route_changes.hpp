#pragma once

#include "base/error.hpp"
#include "net/ipv4_range.hpp"
#include "net/netlink_message.hpp"

#include <boost/asio/ip/address.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::net {

using IpAddress = boost::asio::ip::address;
using MacAddress = std::array<std::uint8_t, 6>;

/// A route of the main table, of the family of its addresses.
struct Route {
    IpAddress destination;  ///< the unspecified address with prefix 0 is the default route
    unsigned prefix = 32;   ///< 0 to 32, or to 128
    int link = 0;           ///< index of the link it leaves by
    std::optional<IpAddress> gateway = std::nullopt;  ///< next hop; none: reached directly
    /// Source of what this host itself sends this way, ICMP errors about forwarded packets
    /// included. Without it the kernel may choose any address of the host.
    std::optional<IpAddress> source = std::nullopt;
};

/// Changes of links, addresses, routes and neighbours that RouteSocket::apply() makes in one system
/// call, in the order they are called here. A wrong one is refused there, and then none is made.
class RouteChanges {
  public:
    RouteChanges& set_up(int link);
    /// The link makes itself no IPv6 address, and so asks for no routers either. What it has
    /// stays. `unsupported` in a kernel without IPv6.
    RouteChanges& without_own_addresses(int link);
    /// `prefix` 0 to 32, or to 128. Success also when the link has this very address already. IPv6
    /// addresses are of use at once, and bring no route. `label` begins with the link's name, at
    /// most 15 bytes; only IPv4 addresses have one.
    RouteChanges& add_address(int link, const IpAddress& address, unsigned prefix,
                              std::string_view label = {});
    RouteChanges& delete_address(int link, const IpAddress& address, unsigned prefix);
    /// conflict when the same destination is routed already.
    RouteChanges& add_route(const Route& route);
    /// Through `gateway`, which must be reachable by an earlier route over `link`.
    RouteChanges& add_default_route(int link, const IpAddress& gateway);
    /// A permanent entry: the address is never asked for, and no answer replaces it.
    RouteChanges& add_neighbour(int link, const IpAddress& address, const MacAddress& mac);

  private:
    friend class RouteSocket;

    void add(NetlinkMessage& message, std::string what);
    bool check_prefix(const IpAddress& address, unsigned prefix, const std::string& what);
    void change_address(std::uint16_t type, std::uint16_t flags, int link, const IpAddress& address,
                        unsigned prefix, std::string_view label, std::string what);

    std::vector<std::uint8_t> datagram_;
    std::vector<std::string> steps_;  ///< what message n does; its sequence number is n + 1
    std::size_t last_ = 0;            ///< where the last message begins
    std::optional<Error> failed_;
};

}  // namespace opensandbox::net
