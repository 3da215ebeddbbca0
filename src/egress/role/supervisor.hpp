#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "egress/settings/environment.hpp"

#include <functional>

namespace opensandbox::egress {

/// One life of the supervised process. What it returns is its exit code; once it is at work it
/// writes a byte to `ready`.
using Life = std::function<int(int ready)>;

/// Runs `life` in a child process until SIGTERM or SIGINT, which are passed on, and again whenever
/// it ends unasked; returns the exit code of the last. A first life that ends by itself before it
/// was ready is not repeated: what keeps it from starting would keep the next one, too.
///
/// As the first process of a container it holds the container, and with it the sandbox's network
/// namespace and the rules in it, while the one at work is replaced: an engine unplugs the network
/// of a container that ends. To be called while there is one thread.
int supervise(const Life& life);

/// The API's socket, listening. Who supervises holds it throughout: else, while the one at work is
/// replaced, something in the sandbox could listen on its port and be told the token. `io` and what
/// the kernel says.
Result<UniqueFd> listen_for_api(const ListenAddress& address);

}  // namespace opensandbox::egress
