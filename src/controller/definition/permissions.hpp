#pragma once

#include "json/document.hpp"

#include <string_view>

/// What each role may do in a cluster: what its code calls, no more. The manifests and the tests,
/// which run the roles under exactly this, read the same rows.
namespace opensandbox::controller {

/// `rules` of a ClusterRole.
json::array controller_rules();
/// `rules` of a Role in the controller's own namespace: its lease.
json::array election_rules();
/// `rules` of a ClusterRole for `opensandbox serve` with the kubernetes runtime.
json::array server_rules();

}  // namespace opensandbox::controller
