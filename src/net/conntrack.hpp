#pragma once

#include "base/error.hpp"
#include "net/netlink_socket.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace opensandbox::net {

/// A connection as the kernel tracks it, in the direction it was opened.
struct TrackedConnection {
    boost::asio::ip::address source;
    boost::asio::ip::address destination;  ///< before any translation
    std::uint8_t protocol = 0;             ///< IPPROTO_TCP, ...
    std::uint16_t source_port = 0;         ///< ports are of TCP, UDP, SCTP and the like; else 0
    std::uint16_t destination_port = 0;
    std::uint16_t icmp_id = 0;  ///< of ICMP and ICMPv6, with the next two
    std::uint8_t icmp_type = 0;
    std::uint8_t icmp_code = 0;
    bool destination_translated = false;
    std::uint32_t mark = 0;
};

/// The kernel's connection tracking of the network namespace this was opened in (ctnetlink). A
/// connection whose entry is deleted is not ended by that: its next packet counts as the first of a
/// new one, which the rules then judge. So change the rules first and delete afterwards. A call
/// that looks at all entries of the namespace takes 3 to 25 ms. Synchronous. Not thread-safe.
class ConnectionTracking {
  public:
    /// unsupported in a kernel without it.
    static Result<ConnectionTracking> open();

    /// The connections that were opened from this address.
    Result<std::vector<TrackedConnection>> list(const boost::asio::ip::address& source);
    /// The connections of this namespace that carry this mark.
    Result<std::vector<TrackedConnection>> list_marked(std::uint32_t mark);
    /// Deletes this one; success also when it is gone.
    Status remove(const TrackedConnection& connection);
    /// Deletes all that were opened from this address, to `destination` only when one is given.
    Status remove_all(const boost::asio::ip::address& source,
                      const std::optional<boost::asio::ip::address>& destination = std::nullopt);

  private:
    explicit ConnectionTracking(NetlinkSocket socket) : socket_(std::move(socket)) {}

    Result<std::vector<TrackedConnection>> list(
        NetlinkMessage& request, const std::function<bool(const TrackedConnection&)>& wanted);

    NetlinkSocket socket_;
};

/// Reads an IPCTNL_MSG_CT_NEW message; empty when it is another or malformed.
std::optional<TrackedConnection> parse_connection(NetlinkBytes message);

}  // namespace opensandbox::net
