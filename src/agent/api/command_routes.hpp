#pragma once

#include "agent/api/services.hpp"
#include "agent/command/request.hpp"
#include "http/router.hpp"

namespace opensandbox::agent {

/// /command and what belongs to it (execd contract 3). `services` is borrowed.
void add_command_routes(http::Router& router, Services& services);

/// Runs a checked request and answers with its events, or with an error before the first one.
Awaitable<void> run_command_request(Services& services, http::Exchange& exchange,
                                    CommandRequest request);

}  // namespace opensandbox::agent
