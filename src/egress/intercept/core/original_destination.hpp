#pragma once

#include "base/error.hpp"
#include "egress/intercept/core/gate.hpp"

#include <functional>

namespace opensandbox::egress {

/// Where the client of an accepted connection wanted to go.
using OriginalDestination = std::function<Result<Endpoint>(int fd)>;

/// Asks the kernel's connection tracking (SO_ORIGINAL_DST): for connections that were redirected
/// to this host by NAT, of either family. `not_found` when this one was not: then the client
/// connected to us, and passing that on would be a loop.
Result<Endpoint> redirected_destination(int fd);

}  // namespace opensandbox::egress
