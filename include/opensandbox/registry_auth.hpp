#pragma once

#include <string>
#include <utility>

namespace opensandbox::sdk {

/// Opens a registry, for one request.
struct RegistryAuth {
    RegistryAuth() = default;
    RegistryAuth(std::string user, std::string secret)
        : username(std::move(user)), password(std::move(secret)) {}
    std::string username;
    std::string password;
};

}  // namespace opensandbox::sdk
