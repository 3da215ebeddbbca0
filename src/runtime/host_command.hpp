#pragma once

#include "base/error.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace opensandbox::runtime {

/// Where a program of the host's is: PATH, then the usual directories, also those of
/// administrators, which an ordinary user's PATH and that of services often lack. Empty if nowhere.
std::string find_host_program(const std::string& name);

/// What few commands need.
struct HostCommandOptions {
    std::vector<std::string> secrets;  ///< shown as *** where the program wrote them
    int stop = -1;                     ///< descriptor; when it is readable the program is ended
};

/// Runs a program of this host, found on PATH, without a shell; standard input is empty. It leads a
/// session of its own. Fails with its exit code and the end of what it wrote, with `timeout` after
/// `limit` (it is killed then, with those of its session), `cancelled` when it was stopped, or with
/// `not_found` when there is no such program. What it leaves in the background is not waited for.
/// Blocks.
Status run_host_command(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
                        const HostCommandOptions& options = {});

}  // namespace opensandbox::runtime
