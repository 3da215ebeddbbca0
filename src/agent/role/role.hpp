#pragma once

#include "agent/process/environment.hpp"

#include <string>
#include <vector>

namespace opensandbox::agent {

/// The `exec` role: flags and environment of the contract, then run().
int main(int argc, char** argv);

/// The `bootstrap` role, which takes the place of bootstrap.sh (execd contract 11): prepares the
/// environment, then runs the agent as init with the user's command.
int bootstrap_main(int argc, char** argv);

/// The environment of this process; entries without a name are left out.
Environment current_environment();

/// Runs the agent that the arguments (without a program's name) and the environment ask for, until
/// it ends; returns the exit code, 2 for wrong usage. The token is wiped from `argv` and from the
/// environment of this process.
int start(const std::vector<std::string>& arguments, const Environment& environment, int argc,
          char** argv);

}  // namespace opensandbox::agent
