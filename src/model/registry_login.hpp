#pragma once

#include <string>
#include <utility>

namespace opensandbox::model {

/// User and password for an image's registry, for one pull; never stored.
struct RegistryLogin {
    RegistryLogin() = default;
    RegistryLogin(std::string u, std::string p) : username(std::move(u)), password(std::move(p)) {}
    std::string username;
    std::string password;
};

}  // namespace opensandbox::model
