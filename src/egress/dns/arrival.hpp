#pragma once

#include "base/error.hpp"
#include "egress/dns/gate.hpp"

#include <boost/asio/ip/address.hpp>
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace opensandbox::egress::dns {

/// How a query came in.
struct Arrival {
    unsigned interface = 0;          ///< index of the incoming one; 0 when unknown
    boost::asio::ip::address local;  ///< asked for, after destination translation
    boost::asio::ip::address peer;
    std::uint16_t peer_port = 0;
    bool tcp = false;
};

/// Whose queries these are; nothing when nobody's: they are dropped. With UDP it is called for
/// every query, with TCP once for each connection.
using Identify = std::function<std::optional<ClientId>(const Arrival&)>;

/// All queries are those of one client: a sidecar's.
inline Identify always(ClientId client) {
    return [client](const Arrival&) { return std::optional<ClientId>(client); };
}

/// Has the kernel tell the interface and address of what arrives on a socket of this family: with
/// each datagram, or by connection_arrival() for those accepted from a listening one.
Status report_arrival(int socket, int family);

/// The interface and address in the control data of a message, if there.
void read_arrival(const msghdr& message, Arrival& arrival);

/// How an accepted TCP connection came in. Its interface is that of the packet that opened it
/// (IP_PKTOPTIONS, IPV6_2292PKTOPTIONS).
Arrival connection_arrival(int socket);

/// The address in a socket address, with scope; port too if asked for.
boost::asio::ip::address address_of(const sockaddr_storage& storage, std::uint16_t* port = nullptr);

}  // namespace opensandbox::egress::dns
