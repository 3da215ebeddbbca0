#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "net/ipv4_range.hpp"

#include <cstdint>

namespace opensandbox::runtime::native {

/// Where the resolver of sandboxes gets its queries: bound to the gateway.
struct ResolverSockets {
    UniqueFd udp;
    UniqueFd tcp;
    std::uint16_t port = 0;  ///< 0: none could be had
};

/// UDP and TCP sockets on one port of the gateway, chosen by the kernel, so that other resolvers of
/// the host, or of another server, do not matter.
Result<ResolverSockets> open_resolver_sockets(net::Ipv4Address gateway);

}  // namespace opensandbox::runtime::native
