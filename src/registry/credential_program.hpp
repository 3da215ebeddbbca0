#pragma once

#include "base/error.hpp"

#include <chrono>
#include <string>

namespace opensandbox::registry {

/// Runs `program` (found on PATH) with the argument "get" and `input` on its standard input, and
/// returns what it wrote, at most 64 KiB. Fails with its exit code and without its words, which may
/// hold secrets; with `timeout` after `limit`, when it is killed; with `not_found`. Blocks.
Result<std::string> run_credential_program(const std::string& program, const std::string& input,
                                           std::chrono::milliseconds limit);

}  // namespace opensandbox::registry
