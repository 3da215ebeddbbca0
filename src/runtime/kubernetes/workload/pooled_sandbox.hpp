#pragma once

#include "model/task.hpp"
#include "runtime/kubernetes/observed/pool.hpp"
#include "runtime/kubernetes/workload/batch_sandbox.hpp"

#include <optional>
#include <string>

/// Sandboxes out of pools (kubernetes 3.1, 2.3). Pure.
namespace opensandbox::runtime::kubernetes {

/// The pod that a sandbox has from the start, when its server claimed one.
struct ClaimedPod {
    std::string name;
    std::string uid;
    std::string address;
};

/// The task that makes a pod of a pool a sandbox: its entrypoint under the agent.
model::Task sandbox_task(const SandboxSpec& spec);

/// The BatchSandbox of a sandbox in a pool.
json::object pooled_manifest(const SandboxSpec& spec, const std::string& pool,
                             const WorkloadMarks& marks, const std::optional<ClaimedPod>& pod);

/// A pool's template as its pods need it: where its container `sandbox` (or the first) names no
/// command, our agent is put into the pod and waits there for a task, with a token of its own. A
/// template that says itself what runs stays as it is. `invalid_argument` names what is no pod
/// template.
Result<json::object> complete_pool_template(json::object pod_template,
                                            const KubernetesOptions& options,
                                            const std::string& token);

/// The image of the container `sandbox`, or of the first; empty without one.
std::string image_of_template(const json::value& pod_template);

}  // namespace opensandbox::runtime::kubernetes
