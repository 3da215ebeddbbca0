#pragma once

namespace opensandbox::server {

/// The `serve` role: the lifecycle server. Returns the exit code.
int main(int argc, char** argv);

/// `init-config [PATH] [--example KIND] [--force]`: writes a configuration to start from.
int init_config_main(int argc, char** argv);

}  // namespace opensandbox::server
