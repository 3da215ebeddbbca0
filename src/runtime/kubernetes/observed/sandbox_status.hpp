#pragma once

#include "model/sandbox.hpp"
#include "runtime/kubernetes/observed/batch_sandbox.hpp"
#include "runtime/kubernetes/observed/pod.hpp"

namespace opensandbox::runtime::kubernetes {

/// The state that the API shows of a BatchSandbox (kubernetes 3.2), with the time of its last
/// transition. `pod`: its first replica, or null; `answered`: its agent was seen to answer. Pure.
model::SandboxStatus sandbox_status(const BatchSandbox& batch, const Pod* pod, bool answered);

}  // namespace opensandbox::runtime::kubernetes
