#pragma once

#include "agent/process/environment.hpp"
#include "json/document.hpp"

#include <chrono>
#include <string>

namespace opensandbox::agent {

/// What a run of a session asks for.
struct SessionRequest {
    std::string text;                     ///< for the shell, without NUL
    std::string directory;                ///< for this run only: absolute without links, or empty
    std::chrono::milliseconds timeout{};  ///< from its start
};

/// The members of a body of POST /session: the directory as requested, empty for none.
/// `invalid_argument` names the member and the rule. Pure.
Result<std::string> parse_session_request(const json::value& body);

/// A checked body of POST /session/{id}/run (execd contract 4). The directory must exist and comes
/// out absolute and without links. Without a timeout a run ends after 24 hours.
Result<SessionRequest> parse_session_run(const json::value& body, const Environment& environment);

}  // namespace opensandbox::agent
