#include "server/config/config.hpp"

#include <cstdlib>

namespace opensandbox::server {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

}  // namespace

Status apply_environment(Config& config) {
    if (const char* key = std::getenv("OPENSANDBOX_SERVER_API_KEY")) config.api_key = key;
    if (std::string file = variable("SANDBOX_TENANTS_CONFIG_PATH"); !file.empty()) {
        config.tenants.file = file;
        config.tenants.enabled = true;
    }
    if (config.tenants.enabled && config.api_key && !config.api_key->empty()) {
        return Error(ErrorCode::invalid_argument,
                     "tenants: must be absent where server.api_key or OPENSANDBOX_SERVER_API_KEY "
                     "is set; every tenant has keys of its own");
    }
    for (const char* name :
         {"OPENSANDBOX_SECURE_ACCESS_KEYS", "OPENSANDBOX_SECURE_ACCESS_ACTIVE_KEY"}) {
        if (!variable(name).empty()) {
            return Error(
                ErrorCode::invalid_argument,
                std::string(name) + ": must not be set; signed endpoints need an ingress gateway");
        }
    }
    return {};
}

}  // namespace opensandbox::server
