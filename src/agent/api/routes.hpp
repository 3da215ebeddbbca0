#pragma once

#include "agent/api/services.hpp"
#include "agent/command/request.hpp"
#include "http/exchange.hpp"
#include "http/router.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// Everything that the agent answers: the token first, on every path, then the routes, then 404 and
/// 405 in JSON (execd contract 1.2 to 1.4). A slash at the end of a path makes no difference, nor
/// "/proxy/<the agent's own port>" at its front.
/// `services` is borrowed, here and by every group of routes.
http::Handler make_handler(Services& services);

// The groups of routes, one file each.

/// /command and what belongs to it (execd contract 3).
void add_command_routes(http::Router& router, Services& services);
/// POST /code and /code/context(s) (execd contract 5).
void add_code_routes(http::Router& router, Services& services);
/// DELETE /command and DELETE /code: one id, whatever it belongs to (execd contract 3.5, 5.4).
void add_interrupt_routes(http::Router& router, Services& services);
/// /session and what belongs to it (execd contract 4).
void add_session_routes(http::Router& router, Services& services);
/// /files/*, /directories* and the same under /v1/filesystem/{uid}/{gid} (execd contract 6).
void add_file_routes(http::Router& router, Services& services);
/// /metrics and /metrics/watch (execd contract 7).
void add_metrics_routes(http::Router& router, Services& services);
/// `/pty` and what is below it (execd contract 8).
void add_pty_routes(http::Router& router, Services& services);
/// /v1/isolated/* (execd contract 9).
void add_isolated_routes(http::Router& router, Services& services);
/// /proxy/{port}/…: passes requests and WebSockets to a service of the sandbox (execd 1.4).
void add_proxy_routes(http::Router& router, Services& services);

/// Runs a checked request and answers with its events, or with an error before the first one.
Awaitable<void> run_command_request(Services& services, http::Exchange& exchange,
                                    CommandRequest request);

// The parts of the routes for isolation.

/// One of the routes of /v1/isolated, or where there is a broker the way to it.
void add_isolated_route(http::Router& router, Services& services, std::string_view method,
                        std::string_view pattern, http::Handler handler);
/// GET …/diff and POST …/commit.
void add_change_routes(http::Router& router, Services& services);
/// The session that the path names, or null after an answer that says why not.
Awaitable<std::shared_ptr<IsolatedSession>> session_of(Services& services,
                                                       http::Exchange& exchange);

/// Where a proxied request goes: the raw target without its prefix, and the port. Empty when the
/// path is no "/proxy/<1 to 65535>[/…]". Pure.
struct ProxyTarget {
    std::uint16_t port = 0;
    std::string target;
};
std::optional<ProxyTarget> proxy_target(std::string_view raw_target);

/// Takes every "/proxy/<own>" off the front of a target: the agent's API is below the path of its
/// own port, too, where clients of endpoints look for it. Pure.
void take_own_prefix(std::string& target, std::uint16_t own);

}  // namespace opensandbox::agent
