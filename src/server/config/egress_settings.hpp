#pragma once

#include "server/config/config.hpp"

#include <string>
#include <utility>
#include <vector>

namespace opensandbox::server {

/// What [egress] says, as native sandboxes' enforcer takes it (network 1.3).
std::vector<std::pair<std::string, std::string>> native_egress_settings(const Config& config);

}  // namespace opensandbox::server
