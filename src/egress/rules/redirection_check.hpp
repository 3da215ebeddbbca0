#pragma once

#include "base/error.hpp"
#include "net/stream.hpp"

#include <chrono>

namespace opensandbox::egress::rules {

/// Asks servers that do not exist (addresses of this namespace and ones reserved for documentation)
/// for a name, as the sandbox would, and waits for the answer of the resolver that the queries are
/// redirected to: any answer will do. `unavailable` when one stayed out: then queries for names go
/// elsewhere, or the resolver does not listen. Families and servers that there is no way to are
/// left out. To be run before the sidecar reports that it is healthy; its socket has no mark.
Awaitable<Status> verify_redirection(std::chrono::milliseconds patience);

}  // namespace opensandbox::egress::rules
