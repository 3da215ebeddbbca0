#pragma once

#include "agent/api/services.hpp"
#include "agent/isolated/isolation.hpp"
#include "http/router.hpp"

namespace opensandbox::agent {

/// One of the routes of /v1/isolated, or where there is a broker the way to it.
void add_isolated_route(http::Router& router, Services& services, std::string_view method,
                        std::string_view pattern, http::Handler handler);

/// GET …/diff and POST …/commit.
void add_change_routes(http::Router& router, Services& services);

/// The session that the path names, or null after an answer that says why not.
Awaitable<std::shared_ptr<IsolatedSession>> session_of(Services& services,
                                                       http::Exchange& exchange);

}  // namespace opensandbox::agent
