#pragma once

namespace opensandbox::egress {

/// The role `opensandbox egress`: the sidecar, configured by its environment (network contract
/// 1.3), until SIGTERM or SIGINT. Returns the exit code: 1 when it could not start, 2 for wrong
/// usage. With `--supervised` it is started again when it ends unasked (supervisor.hpp).
int run_sidecar(int argc, char** argv);

}  // namespace opensandbox::egress
