#pragma once

#include "base/error.hpp"
#include "egress/intercept/core/idle_watch.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::egress {

/// What relays allow.
struct RelayLimits {
    /// Of the fields of one message; 431 or a failed response beyond it.
    std::size_t max_header = 256 * 1024;
    /// Of a body that a hook rewrites; 413 beyond it.
    std::size_t max_rewritten_body = 1024 * 1024;
    /// From the first byte of a request's head to its last.
    std::chrono::milliseconds head_timeout{30'000};
    /// Of a connection on which no request is in flight.
    std::chrono::milliseconds idle_timeout{300'000};
    /// Protocols that a request may change to; other requests for a change go on without it. What
    /// follows such a change is not looked at, so none of them may carry requests of their own.
    std::vector<std::string> upgrades{"websocket"};
    /// Streams of one HTTP/2 connection at a time.
    std::uint32_t max_streams = 128;
    /// Windows of all HTTP/2 connections of one client: what they may have in flight. Sides of
    /// connections that find nothing left get on with the 64 KiB they begin with.
    std::size_t max_client_bytes = 64 * 1024 * 1024;
};

/// What one client holds; shared by its connections.
struct ClientLoad {
    std::size_t connections = 0;
    std::size_t decrypted = 0;  ///< of them, where credentials decide what is intercepted
    std::size_t bytes = 0;      ///< read from one side of HTTP/2 and not yet taken by the other
    std::size_t reserved = 0;   ///< of RelayLimits::max_client_bytes
};

/// Connects to the server when its first request may go out. An Error's message is told to the
/// client.
using ConnectUpstream =
    std::function<Awaitable<Result<std::unique_ptr<net::Stream>>>(std::string host)>;

}  // namespace opensandbox::egress
