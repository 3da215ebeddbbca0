#pragma once

#include "json/document.hpp"
#include "kube/object/metadata.hpp"
#include "runtime/kubernetes/kubernetes_options.hpp"
#include "runtime/runtime.hpp"

#include <string>

/// The objects that a create writes (kubernetes 3.1). Pure.
namespace opensandbox::runtime::kubernetes {

/// What a manifest says beside the request.
struct WorkloadMarks {
    std::string egress_token;  ///< empty without a policy
    std::string idempotency;   ///< value of that annotation; empty without a key
};

/// Labels and annotations of a sandbox's objects.
json::object workload_metadata(const SandboxSpec& spec, const WorkloadMarks& marks);

/// The BatchSandbox of one sandbox, on top of the operator's template.
json::object batch_sandbox_manifest(const SandboxSpec& spec, const KubernetesOptions& options,
                                    const WorkloadMarks& marks);

/// The Secret with the login for the image's registry; it goes with its owner.
json::object image_secret_manifest(const SandboxSpec& spec, const kube::Owner& owner);

/// The registry that a reference names: its first part when that has a dot or a colon, else
/// https://index.docker.io/v1/.
std::string registry_of(std::string_view reference);

}  // namespace opensandbox::runtime::kubernetes
