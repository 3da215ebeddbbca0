#pragma once

#include "agent/process/environment.hpp"

#include <string_view>

namespace opensandbox::agent {

/// Reads the text of an EXECD_ENVS file (execd contract 3.4): `K=V` lines, `#` comments,
/// `K='literal'` and `K="escaped"` that may span lines. Lines without `=` and names that no process
/// may have are skipped. Linear in the text. Pure.
Environment::Pairs parse_environment_file(std::string_view text, const VariableLookup& lookup);

/// Reads the file that EXECD_ENVS of `environment` names; nothing when unset, unreadable or larger
/// than 1 MiB.
Environment::Pairs read_environment_file(const Environment& environment);

}  // namespace opensandbox::agent
