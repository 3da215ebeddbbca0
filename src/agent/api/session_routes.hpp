#pragma once

#include "agent/api/services.hpp"
#include "http/router.hpp"

namespace opensandbox::agent {

/// /session and what belongs to it (execd contract 4). `services` is borrowed.
void add_session_routes(http::Router& router, Services& services);

}  // namespace opensandbox::agent
