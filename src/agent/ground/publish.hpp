#pragma once

#include "base/unique_fd.hpp"
#include "net/stream.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::agent {

/// A socket in another network that already listens, and the port of this one that its connections
/// are handed on to.
struct Publication {
    static constexpr std::size_t kMost = 256;
    UniqueFd listener;
    std::uint16_t port;
    std::string host;          ///< numeric; empty: the loopback
    std::size_t most = kMost;  ///< connections at once; more wait until others end
};

/// Hands every connection to the listeners on to their ports. What nobody listens for is closed at
/// once. Runs as long as the event loop.
Status publish(asio::any_io_executor executor, std::vector<Publication> publications);

}  // namespace opensandbox::agent
