#pragma once

#include "base/error.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox {

/// A program that is asked for one answer, such as a credential.
struct ProgramCall {
    std::string program;                 ///< found on PATH when it has no slash
    std::vector<std::string> arguments;  ///< behind its name
    /// Added to our own environment, or in place of variables of the same name there.
    std::vector<std::pair<std::string, std::string>> environment;
    std::string input;  ///< on its standard input
    std::chrono::milliseconds limit{10'000};
};

/// Runs the program and returns what it wrote to its standard output, at most 64 KiB. Fails with
/// its exit code and without its words, which may hold secrets; with `timeout` after the limit,
/// when it is killed with all it started; with `not_found`. Blocks.
Result<std::string> ask_program(const ProgramCall& call);

}  // namespace opensandbox
