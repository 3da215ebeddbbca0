#pragma once

#include "agent/isolated/request.hpp"
#include "agent/process/spawn.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// The shells to try for a run: bash, else sh. Each takes up the state that the last foreground run
/// of the session left (variables, functions, working directory, umask), exports `envs` and
/// evaluates the code. A foreground run leaves its state behind when its shell exits, however it
/// does, unless the code set an EXIT trap of its own or replaced the shell. Pure.
std::vector<Program> session_shells(const RunRequest& request,
                                    std::optional<std::string_view> path);

}  // namespace opensandbox::agent
