#pragma once

#include "agent/command/request.hpp"
#include "agent/services.hpp"
#include "agent/stream/line_splitter.hpp"
#include "http/router.hpp"

#include <string_view>

namespace opensandbox::agent {

/// /command and what belongs to it (execd contract 3). `services` is borrowed.
void add_command_routes(http::Router& router, Services& services);

/// Runs a checked request and answers with its events, or with an error before the first one.
Awaitable<void> run_command_request(Services& services, http::Exchange& exchange,
                                    CommandRequest request);

/// The form of output events for a client: an SDK of OpenSandbox older than 1.1 names itself in
/// User-Agent ("OpenSandbox-Python-SDK/0.1.9") and gets the stripped one.
LineForm line_form_for(std::string_view user_agent);

}  // namespace opensandbox::agent
