#pragma once

#include <string>
#include <utility>

namespace opensandbox::model {

/// User and password for an image's registry, for one pull; never stored.
struct RegistryLogin {
    std::string username;
    std::string password;
};

}  // namespace opensandbox::model
