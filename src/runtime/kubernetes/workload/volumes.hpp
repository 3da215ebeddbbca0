#pragma once

#include "json/document.hpp"
#include "runtime/kubernetes/kubernetes_options.hpp"
#include "runtime/runtime.hpp"

#include <optional>
#include <string>
#include <vector>

/// Volumes of a request as those of a pod, and the claims behind them (lifecycle 2.8, kubernetes
/// 3.1). Pure.
namespace opensandbox::runtime::kubernetes {

/// 400 for what a pod cannot have: VOLUME::… for host paths that are not allowed, and
/// SANDBOX::INVALID_PARAMETER for names that clash and claims with different terms.
Status check_volumes(const SandboxSpec& spec, const KubernetesOptions& options);

/// `volumes` of the pod: one for each host path, one for each claim however often it is mounted.
json::array pod_volumes(const SandboxSpec& spec);
/// `volumeMounts` of the sandbox's container.
json::array pod_mounts(const SandboxSpec& spec);

/// A claim that a request may have to make.
struct WantedClaim {
    std::string name;
    bool create_if_missing = true;
    bool delete_with_sandbox = false;
    json::object manifest;
};
std::vector<WantedClaim> wanted_claims(const SandboxSpec& spec, const KubernetesOptions& options);

}  // namespace opensandbox::runtime::kubernetes
