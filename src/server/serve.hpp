#pragma once

namespace opensandbox::server {

/// The `serve` role: the lifecycle server. Returns the exit code.
int main(int argc, char** argv);

/// `init-config [PATH] [--force]`: writes a commented example configuration.
int init_config_main(int argc, char** argv);

}  // namespace opensandbox::server
