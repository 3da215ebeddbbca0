#pragma once

#include "agent/agent.hpp"
#include "net/stream.hpp"

#include <vector>

namespace opensandbox::agent {

/// Hands every connection to the listeners on to their ports. What nobody listens for is closed at
/// once. Runs as long as the event loop.
Status publish(asio::any_io_executor executor, std::vector<Publication> publications);

}  // namespace opensandbox::agent
