#pragma once

#include "egress/intercept/core/relay.hpp"
#include "egress/intercept/core/request_guard.hpp"
#include "net/stream.hpp"

#include <memory>
#include <string>

namespace opensandbox::egress {

/// Passes the HTTP/1 requests of one client connection to one server and the answers back, each
/// piece as it comes. Every message is parsed strictly and written anew, so that both ends agree
/// on where it ends. One request is in flight at a time; a request and its answer flow at the same
/// time. A change to WebSocket turns it into a splice. Returns when both connections are over.
///
/// `received` are bytes read from `client` before. `limits` and `watch` must outlive the call.
Awaitable<void> relay_http1(RequestGuard& guard, RelayLimits& limits, IdleWatch& watch,
                            std::unique_ptr<net::Stream> client, std::string received,
                            ConnectUpstream connect);

}  // namespace opensandbox::egress
