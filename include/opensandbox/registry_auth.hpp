#pragma once

#include <string>
#include <utility>

namespace opensandbox::sdk {

/// Opens a registry, for one request.
struct RegistryAuth {
    std::string username;
    std::string password;
};

}  // namespace opensandbox::sdk
