#pragma once

#include "base/error.hpp"
#include "egress/settings/environment.hpp"

#include <map>
#include <string>

namespace opensandbox::egress {

/// Of the operator's variables those that hold for a sandbox whose request says nothing else: all
/// that a request may set, but for interception, which is its choice alone.
std::map<std::string, std::string> sandbox_defaults(const EnvironmentLookup& operators);

/// What a request's variables (see GuardedSpec) say for a sandbox that is guarded from its host,
/// where it sets none those of `defaults`; the rest of the options are a sidecar's defaults and
/// mean nothing. `invalid_argument` for one that a request may not set, or whose value is wrong;
/// `unsupported` for POLICY_FILE, a path where there is no sidecar. Pure.
Result<ParsedEnvironment> parse_request_environment(
    const std::map<std::string, std::string>& variables,
    const std::map<std::string, std::string>& defaults = {});

}  // namespace opensandbox::egress
