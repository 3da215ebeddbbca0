#pragma once

#include "agent/api/services.hpp"
#include "agent/stream/line_splitter.hpp"
#include "http/exchange.hpp"

#include <string_view>

namespace opensandbox::agent {

/// The form of output events for a client: an SDK of OpenSandbox older than 1.1 names itself in
/// User-Agent ("OpenSandbox-Python-SDK/0.1.9") and gets the stripped one. Pure.
LineForm line_form_for(std::string_view user_agent);

/// The form for the client of this exchange; EXECD_LEGACY_LINE_EVENTS=1 in the agent's environment
/// gives every client the stripped one.
LineForm line_form_for(const Services& services, http::Exchange& exchange);

}  // namespace opensandbox::agent
