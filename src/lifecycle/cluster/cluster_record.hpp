#pragma once

#include "runtime/kubernetes/observed/batch_sandbox.hpp"
#include "runtime/kubernetes/observed/pod.hpp"
#include "store/sandbox_store.hpp"

#include <string>

namespace opensandbox::lifecycle {

/// The row of a sandbox in a cluster, read from its objects. `pod`: of its first replica, or null;
/// `answered`: its agent was seen to answer. Empty members are what the objects do not say. Pure.
store::SandboxRecord cluster_record(const runtime::kubernetes::BatchSandbox& batch,
                                    const runtime::kubernetes::Pod* pod, bool answered);

/// By the label that every sandbox of the API has; empty for others.
std::string sandbox_id_of(const kube::Metadata& metadata);

}  // namespace opensandbox::lifecycle
