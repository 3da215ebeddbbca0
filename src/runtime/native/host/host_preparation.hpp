#pragma once

#include "base/error.hpp"
#include "runtime/native/host/host.hpp"

#include <cstdint>

/// Steps of prepare_host(), a file each.
namespace opensandbox::runtime::native {

/// Gateway address, forwarding, resolver and firewall (host_network.cpp); fills in what the host's
/// network decides.
Status prepare_network(Host& host);

// What the kernel counts for the whole host or for a user, where neither a namespace nor a control
// group bounds it (kernel_limits.cpp): specs/kernel-limits.md has the table.

/// Raises what counts objects of the whole host whose memory is charged to the sandbox that has
/// them: the sandbox's own limits end it first, and no neighbour meets the count. What the host
/// does not let us raise stays, and the log says so. For root's server.
void raise_limits_of_host();

/// Processes and threads that all sandboxes may have together: an eighth of what the host can have
/// stays with the host. 0: not known.
std::uint64_t share_of_processes();

/// All sandboxes of an ordinary user count against that user: leaves each a quarter of it. Of what
/// is made by this process from now on.
Status share_limits_of_user();

}  // namespace opensandbox::runtime::native
