#pragma once

#include "agent/api/services.hpp"
#include "http/router.hpp"

namespace opensandbox::agent {

/// POST /code and /code/context(s) (execd contract 5). `services` is borrowed.
void add_code_routes(http::Router& router, Services& services);

}  // namespace opensandbox::agent
