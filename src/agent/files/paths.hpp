#pragma once

#include "agent/process/environment.hpp"

#include <string>
#include <string_view>

namespace opensandbox::agent {

/// A path of a request made absolute: a leading `~/` (or `~` alone) is the agent's HOME, a relative
/// one starts at the agent's directory, `$NAME` and `${NAME}` of variables that are set are
/// replaced, any other `$` is literal (execd contract 1.3, 13). `invalid_argument` when empty or
/// with NUL.
Result<std::string> resolve_path(std::string_view requested, const Environment& environment);

}  // namespace opensandbox::agent
