#pragma once

#include "agent/process/environment.hpp"
#include "base/error.hpp"

#include <chrono>
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

// The steps of the `bootstrap` role.

/// What bootstrap.sh does to the environment (execd contract 11, steps 1 and 2): certificates of
/// the egress proxy when they are wanted, waiting for them `wait` at most, and EXECD_ENVS, by
/// default /opt/opensandbox/.env, made when it can be. `root` stands before every path but those of
/// variables; empty outside of tests. Blocks.
void prepare_bootstrap(Environment& environment, const std::string& root,
                       std::chrono::milliseconds wait);

/// The user's command (step 5): BOOTSTRAP_CMD or `-c text` for a shell, no arguments for the plain
/// shell, else the arguments as they are. The shell is BOOTSTRAP_SHELL, bash or sh; `not_found`
/// when one is needed and there is none.
Result<std::vector<std::string>> bootstrap_command(const std::vector<std::string>& arguments,
                                                   const Environment& environment);

/// The flags that EXECD carries behind the program's name (step 4). Pure.
std::vector<std::string> bootstrap_flags(const Environment& environment);

/// How a shell sources EXECD_BOOTSTRAP_PRE_SCRIPT (step 3) and then becomes `program` with
/// `arguments` again, in the environment that the script left. Empty when there is no script to be
/// sourced; `not_found` when it cannot be read or there is no shell.
Result<std::vector<std::string>> pre_script_command(const Environment& environment,
                                                    const std::string& program,
                                                    const std::vector<std::string>& arguments);

}  // namespace opensandbox::agent
