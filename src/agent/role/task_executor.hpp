#pragma once

namespace opensandbox::agent {

/// The `task-executor` role: runs, as the first process of a pod that waits in a pool, the task of
/// the sandbox that the pod becomes (kubernetes 2.3). Ends with SIGTERM. Returns the exit code.
int task_executor_main(int argc, char** argv);

}  // namespace opensandbox::agent
