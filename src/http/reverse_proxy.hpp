#pragma once

#include "http/client.hpp"
#include "http/exchange.hpp"

#include <functional>
#include <optional>
#include <string>

namespace opensandbox::http {

/// How one exchange is passed on.
struct Forwarding {
    Origin origin;
    std::string target;  ///< raw request target for the backend
    /// Asked when no connection could be made, before anything was sent: may change where the
    /// request goes, and returns whether it is to be tried again.
    std::function<bool(Forwarding&)> reroute;
    /// Edits the fields before they are sent to the backend, after hop-by-hop ones were removed.
    std::function<void(Fields&)> edit_request;
    /// Edits the fields of the backend's answer, after hop-by-hop ones were removed.
    std::function<void(ResponseHead&)> edit_response;
    /// Looks at the head of the backend's answer, which stands for a failure when this returns one:
    /// for backends that are proxies themselves. The answer is then dropped.
    std::function<std::optional<Error>(const ResponseHead&)> failure_in;
    /// Renders a failure that came before the backend's head; default: status_of(error) and JSON.
    std::function<Response(const Error&)> render_error;
};

/// Passes a request on and streams the answer back, byte for byte: raw target, repeated fields,
/// unbuffered both ways, no idle limit on a live stream, WebSocket (and any other) upgrades
/// spliced. After the head was sent, loss of the backend cuts the client's connection.
Awaitable<void> forward(Exchange& exchange, Client& client, Forwarding forwarding);

}  // namespace opensandbox::http
