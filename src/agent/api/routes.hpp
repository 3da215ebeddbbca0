#pragma once

#include "agent/api/services.hpp"
#include "http/exchange.hpp"

namespace opensandbox::agent {

/// Everything that the agent answers: the token first, on every path, then the routes, then 404 and
/// 405 in JSON (execd contract 1.2 to 1.4). A slash at the end of a path makes no difference, nor
/// "/proxy/<the agent's own port>" at its front.
/// `services` is borrowed.
http::Handler make_handler(Services& services);

}  // namespace opensandbox::agent
