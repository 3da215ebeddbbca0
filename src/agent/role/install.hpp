#pragma once

namespace opensandbox::agent {

/// The `install-agent` role: `install-agent DIRECTORY` puts this program there under the names that
/// a pod starts it by, `execd`, `bootstrap.sh` and `task-executor`: what a container does that runs
/// before the sandbox's in the same pod. Returns the exit code.
int install_main(int argc, char** argv);

}  // namespace opensandbox::agent
