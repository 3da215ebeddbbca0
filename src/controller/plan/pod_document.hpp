#pragma once

#include "json/document.hpp"
#include "runtime/kubernetes/observed/batch_sandbox.hpp"

#include <string>

namespace opensandbox::controller {

/// The pod of replica `index` (kubernetes 2.1): the template with the object as its owner, two
/// labels, and the replica's patch, which is a strategic merge patch of the whole pod.
/// `invalid_argument` says what is wrong with template or patch. Pure.
Result<json::object> pod_document(const runtime::kubernetes::BatchSandbox& batch,
                                  std::int64_t index);

/// "NAME-INDEX".
std::string pod_name(const kube::Metadata& batch, std::int64_t index);

/// Of a pod of ours: by its label, else by the number at the end of its name; -1: neither.
std::int64_t pod_index(const kube::Metadata& pod);

}  // namespace opensandbox::controller
