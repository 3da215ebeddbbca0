#pragma once

#include "agent/api/services.hpp"
#include "http/router.hpp"

namespace opensandbox::agent {

/// `/pty` and what is below it (execd contract 8).
void add_pty_routes(http::Router& router, Services& services);

}  // namespace opensandbox::agent
