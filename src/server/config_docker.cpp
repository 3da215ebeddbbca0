#include "server/config_sections.hpp"

namespace opensandbox::server {

void read_docker(ConfigReader& reader, Config& config) {
    reader.text("docker.host_ip", config.host_ip);
}

}  // namespace opensandbox::server
