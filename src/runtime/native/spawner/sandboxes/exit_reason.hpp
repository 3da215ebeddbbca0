#pragma once

#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/runtime.hpp"

#include <string_view>

namespace opensandbox::runtime::native {

/// Why a sandbox ended, from how its first process did and what its cgroup counted. Reasons:
/// OOM_KILLED (killed, and the kernel ended processes for want of memory), PIDS_EXHAUSTED (failed,
/// and forks were refused), AGENT_KILLED, AGENT_CRASHED, EXIT_UNKNOWN; empty when the code says it
/// all. Messages have figures. `at` is left alone. Pure.
Exit explain_exit(const ProcessEnd& end, const Usage& usage, const ResourceLimits& limits);

/// Adds why gVisor ended under a sandbox, if it did: `said` is not empty then. GVISOR_ENDED, unless
/// a limit explains it. Pure.
void explain_gvisor(Exit& exit, std::string_view said);

}  // namespace opensandbox::runtime::native
