#pragma once

#include "base/error.hpp"
#include "egress/sidecar/environment.hpp"

#include <map>
#include <string>

namespace opensandbox::egress {

/// What a request's variables (see GuardedSpec) say for a sandbox that is guarded from its host;
/// the rest of the options are a sidecar's defaults and mean nothing. `invalid_argument` for one
/// that a request may not set, or whose value is wrong; `unsupported` for POLICY_FILE, a path where
/// there is no sidecar. Pure.
Result<ParsedEnvironment> parse_request_environment(
    const std::map<std::string, std::string>& variables);

}  // namespace opensandbox::egress
