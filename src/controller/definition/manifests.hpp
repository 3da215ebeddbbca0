#pragma once

#include "json/document.hpp"

#include <string>

/// All that a cluster needs, as manifests (kubernetes 3.3): definitions, accounts, roles, and the
/// Deployments of controller and server.
namespace opensandbox::controller {

struct ManifestSettings {
    std::string image = "opensandbox:latest";
    std::string name_space = "opensandbox-system";  ///< of controller and server
    std::string sandboxes = "opensandbox";          ///< namespace of sandboxes
    bool definitions_only = false;
};

/// Objects in the order in which they are to be applied.
json::array manifests(const ManifestSettings& settings);

/// Objects as one YAML stream that `kubectl apply -f -` takes.
std::string to_yaml(const json::array& documents);

}  // namespace opensandbox::controller
