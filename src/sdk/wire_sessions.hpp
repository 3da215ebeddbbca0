#pragma once

#include "opensandbox/sessions.hpp"

#include <string>
#include <string_view>

/// JSON of the agent's shells (execd contract section 4).
namespace opensandbox::sdk::wire {

std::string encode_session(const std::string& working_directory);
std::string encode_session_run(const SessionRequest& request);
Result<std::string> decode_session_id(std::string_view body);

}  // namespace opensandbox::sdk::wire
