#pragma once

#include "net/route_socket.hpp"
#include "runtime/native/host/host.hpp"

/// The addresses that a server has on the host's loopback, as gateway of its sandboxes. They are
/// written down in its state directory: one that was killed leaves them, and its next start,
/// perhaps with other ranges, takes away what it no longer needs.
namespace opensandbox::runtime::native {

/// Success also when they are there.
Status add_gateways(net::RouteSocket& routes, const Host& host);
/// Adds them to what is written down; to be called before they are added for the first time.
Status write_down_gateways(const Host& host);
/// Takes away those of earlier starts, less the present ones. Routes to sandboxes carry a gateway's
/// address and go with it: while any does, also one of another server with the same range, the
/// address stays, and stays written down.
void sweep_gateways(const Host& host);
/// Likewise for all of them.
void remove_gateways(const Host& host);

}  // namespace opensandbox::runtime::native
