#pragma once

#include "runtime/docker/engine/image.hpp"

#include <string>
#include <vector>

namespace opensandbox::runtime::docker {

/// A named volume.
struct VolumeInfo {
    std::string name;
    std::string driver;  ///< "local"
    std::string mountpoint;
    StringMap labels;
    StringMap options;
};

/// What to make; an existing volume of that name and driver is returned as it is.
struct VolumeRequest {
    std::string name;
    std::string driver = "local";
    StringMap labels;
    StringMap options;
};

/// A network, from GET /networks/{id}.
struct NetworkInfo {
    std::string id;
    std::string name;
    std::string driver;  ///< "bridge", "host", "null"
    std::string scope;
    bool internal = false;
    std::vector<std::string> subnets;   ///< "172.17.0.0/16"
    std::vector<std::string> gateways;  ///< addresses
    StringMap labels;
};

}  // namespace opensandbox::runtime::docker
