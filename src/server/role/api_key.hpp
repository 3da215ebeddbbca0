#pragma once

#include "base/error.hpp"
#include "server/config/config.hpp"

#include <filesystem>
#include <string>

namespace opensandbox::server {

/// The key that clients must send: OPENSANDBOX_SERVER_API_KEY when it is set (even empty), else
/// server.api_key, else, unless tenants have keys of their own, the one in the state directory,
/// which is made (mode 0600) when missing. Empty: no authentication.
Result<std::string> resolve_api_key(const Config& config, const std::filesystem::path& state_dir);

}  // namespace opensandbox::server
