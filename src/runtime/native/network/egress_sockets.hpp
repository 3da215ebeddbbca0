#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "net/ipv4_range.hpp"
#include "net/ipv6_range.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// Where egress control answers on this host. They stay open while enforcers come and go, so that
/// the packet filter never leads to a port that somebody else has.
struct EgressSockets {
    UniqueFd dns_udp4;
    UniqueFd dns_tcp4;
    UniqueFd intercept4;
    UniqueFd dns_udp6;  ///< this and the next two: none where sandboxes have no IPv6
    UniqueFd dns_tcp6;
    UniqueFd intercept6;
    UniqueFd api;
    std::uint16_t dns_port = 0;        ///< of the gateways
    std::uint16_t intercept_port = 0;  ///< likewise
    std::uint16_t api_port = 0;        ///< of the publish host

    /// All, in the order in which an enforcer takes them.
    [[nodiscard]] std::vector<int> descriptors() const;
};

/// Listens where clients of the host reach the egress API; `port` as listen_on() has it.
using ListenForClients = std::function<Result<UniqueFd>(std::uint16_t& port)>;

/// `record` remembers the API's port from one spawner to the next, for clients that know it.
Result<EgressSockets> open_egress_sockets(net::Ipv4Address gateway,
                                          const std::optional<net::Ipv6Address>& gateway6,
                                          const ListenForClients& listen,
                                          const std::filesystem::path& record);

}  // namespace opensandbox::runtime::native
