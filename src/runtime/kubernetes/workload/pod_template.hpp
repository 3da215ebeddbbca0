#pragma once

#include "json/document.hpp"
#include "runtime/kubernetes/kubernetes_options.hpp"
#include "runtime/runtime.hpp"

#include <string>

/// The pod of a sandbox (kubernetes 3.1). Pure.
namespace opensandbox::runtime::kubernetes {

/// 400 for what a pod cannot be, naming the field: limits beyond those of containers, volumes, all
/// GPUs, another platform than Linux, a policy that the sidecar would refuse.
Status check_workload(const SandboxSpec& spec, const KubernetesOptions& options);

/// The container that puts the agent into a pod.
json::object installer_container(const KubernetesOptions& options);

/// `spec` of the pod. `egress_token`: of the sidecar's API, when the request has a policy.
json::object pod_spec(const SandboxSpec& spec, const KubernetesOptions& options,
                      const std::string& egress_token);

}  // namespace opensandbox::runtime::kubernetes
