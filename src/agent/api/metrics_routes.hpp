#pragma once

#include "agent/api/services.hpp"
#include "http/router.hpp"

namespace opensandbox::agent {

/// /metrics and /metrics/watch (execd contract 7).
void add_metrics_routes(http::Router& router, Services& services);

}  // namespace opensandbox::agent
