#pragma once

#include "base/error.hpp"
#include "net/route_socket.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// The addresses that a server has on the host's loopback, as gateway of its sandboxes. They are
/// written down in its state directory: one that was killed leaves them, and its next start,
/// perhaps with other ranges, takes away what it no longer needs.
namespace opensandbox::runtime::native {

/// The present ones.
struct Gateways {
    std::filesystem::path record;  ///< where they are written down
    std::string label;             ///< of their addresses, as far as those have one
    std::vector<net::IpAddress> addresses;
};

/// Success also when they are there.
Status add_gateways(net::RouteSocket& routes, const Gateways& gateways);
/// Adds them to what is written down; to be called before they are added for the first time.
Status write_down_gateways(const Gateways& gateways);
/// Takes away those of earlier starts, less the present ones. Routes to sandboxes carry a gateway's
/// address and go with it: while any does, also one of another server with the same range, the
/// address stays, and stays written down.
void sweep_gateways(const Gateways& gateways);
/// Likewise for all of them.
void remove_gateways(const Gateways& gateways);

}  // namespace opensandbox::runtime::native
