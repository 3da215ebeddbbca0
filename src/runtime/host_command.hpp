#pragma once

#include "base/error.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace opensandbox::runtime {

/// Where a program of the host's is: PATH, then the usual directories, also those of
/// administrators, which an ordinary user's PATH and that of services often lack. Empty if nowhere.
std::string find_host_program(const std::string& name);

/// Runs a program of this host, found on PATH, without a shell; standard input is empty. Fails with
/// its exit code and the end of what it wrote, with `timeout` after `limit` (it is killed then), or
/// with `not_found` when there is no such program. What it leaves in the background is not waited
/// for. Blocks.
Status run_host_command(const std::vector<std::string>& argv, std::chrono::milliseconds limit);

}  // namespace opensandbox::runtime
