#pragma once

#include "base/unique_fd.hpp"
#include "net/ipv4_range.hpp"
#include "runtime/native/network/resolver_sockets.hpp"

namespace opensandbox::runtime::native {

/// In the resolver's process: answers the sandboxes of `range` until `control` ends. Never returns.
[[noreturn]] void run_resolver(const ResolverSockets& sockets, net::Ipv4Range range,
                               UniqueFd control);

}  // namespace opensandbox::runtime::native
