#pragma once

#include "http/exchange.hpp"

#include <functional>
#include <string>

namespace opensandbox::controller {

/// What /healthz, /readyz and /metrics answer.
struct ProbeSources {
    std::function<bool()> is_healthy;
    std::function<bool()> is_ready;
    std::function<std::string()> metrics;  ///< Prometheus text
};

/// Serves these three routes and nothing else.
http::Handler probe_handler(ProbeSources sources);

}  // namespace opensandbox::controller
