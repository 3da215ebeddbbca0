#pragma once

#include "egress/intercept/core/relay.hpp"
#include "egress/intercept/core/request_guard.hpp"
#include "net/stream.hpp"

#include <memory>
#include <string>

namespace opensandbox::egress {

/// Passes the HTTP/2 streams of one client connection to one server and back, stream for stream:
/// bodies as they come, trailers, resets and refusals. A body is read on as fast as the other side
/// takes it. CONNECT is refused in every form. Returns when both connections are over.
///
/// `received` are bytes read from `client` before. `limits`, `watch` and `load` must outlive the
/// call.
Awaitable<void> relay_http2(RequestGuard& guard, RelayLimits& limits, IdleWatch& watch,
                            ClientLoad& load, std::unique_ptr<net::Stream> client,
                            std::string received, ConnectUpstream connect);

}  // namespace opensandbox::egress
