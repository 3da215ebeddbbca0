#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>

/// This program as something to be staged at an engine: the agent, the egress sidecar. All of it
/// blocks.
namespace opensandbox::runtime::docker {

inline constexpr std::size_t kVersionDigits = 16;  ///< of a digest, in names of what is staged

/// This program's processor as the engine names it.
std::string_view own_architecture();

/// The whole file; `io`.
Result<std::string> read_program(const std::string& path);

/// Its SHA-256 in hex. Read in pieces: a server that finds itself staged never holds the program
/// whole. `io`.
Result<std::string> digest_of_program(const std::string& path);

}  // namespace opensandbox::runtime::docker
