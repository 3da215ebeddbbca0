#pragma once

#include "http/exchange.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::http {

/// Whether the request asks for a WebSocket (Upgrade and Connection tokens, version 13, a key).
bool is_websocket_upgrade(const RequestHead& request);

/// The Sec-WebSocket-Accept value for a key (RFC 6455).
std::string websocket_accept(std::string_view key);

/// An unmasked close frame; `reason` is cut to 123 bytes at a character boundary.
std::string websocket_close_frame(std::uint16_t code, std::string_view reason);

/// Sends the 101 that accepts the upgrade; then the connection can be taken over with upgrade().
Awaitable<Status> start_websocket(Exchange& exchange);

/// Accepts the upgrade and closes it with a code: how the proxy reports failures to WebSocket
/// clients (lifecycle 3.4).
Awaitable<void> accept_and_close(Exchange& exchange, std::uint16_t code, std::string_view reason);

}  // namespace opensandbox::http
