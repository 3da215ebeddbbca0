#pragma once

#include "http/exchange.hpp"

#include <string>
#include <string_view>

namespace opensandbox::http {

/// Whether the request asks for a WebSocket (Upgrade and Connection tokens, version 13, a key).
bool is_websocket_upgrade(const RequestHead& request);

/// The Sec-WebSocket-Accept value for a key (RFC 6455).
std::string websocket_accept(std::string_view key);

/// Sends the 101 that accepts the upgrade; then the connection can be taken over with upgrade().
Awaitable<Status> start_websocket(Exchange& exchange);

}  // namespace opensandbox::http
