#pragma once

#include "agent/agent.hpp"
#include "net/stream.hpp"

#include <vector>

namespace opensandbox::agent {

/// Hands every connection to the listeners on to the loopback of this network, at most 256 of each
/// listener at once; more wait until others end. What nobody listens for is closed at once. Runs as
/// long as the event loop.
Status publish(asio::any_io_executor executor, std::vector<Publication> publications);

}  // namespace opensandbox::agent
