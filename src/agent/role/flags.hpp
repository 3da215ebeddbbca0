#pragma once

#include "agent/api/agent.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// What the command line of the `exec` role asks for.
struct Invocation {
    AgentOptions options;
    int log_level = 6;     ///< syslog-like: 3 error, 4 warning, 5 and 6 info, 7 debug
    std::string log_file;  ///< empty: standard output
    bool help = false;
};

/// Reads Go-style flags (`-x v`, `-x=v`, `--x v`, `--x=v`) and the environment, flag over
/// environment over default (execd contract 1.1). `arguments` without the program's name.
/// `invalid_argument` says what is wrong. Pure.
Result<Invocation> parse_invocation(const std::vector<std::string>& arguments,
                                    const std::vector<std::pair<std::string, std::string>>& env);

/// The text for wrong usage and `--help`.
std::string usage();

}  // namespace opensandbox::agent
