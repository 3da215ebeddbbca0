#pragma once

namespace opensandbox::cli {

/// Every role that is not a server: the command line. Returns the exit code: the remote command's
/// own for `run` and `command run`, 2 for wrong usage, 1 for other failures.
int main(int argc, char** argv);

}  // namespace opensandbox::cli
