#pragma once

#include "json/document.hpp"
#include "kube/object/metadata.hpp"
#include "runtime/kubernetes/observed/pod.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Which pods of a pool a BatchSandbox has (kubernetes 1.4). Pure.
namespace opensandbox::runtime::kubernetes {

/// The names in an annotation {"pods": […]}; none without it. `invalid_argument` when it cannot be
/// read: then nothing may be decided by it.
Result<std::vector<std::string>> pods_in(const kube::Metadata& batch, std::string_view annotation);
/// The value of such an annotation.
std::string pods_text(const std::vector<std::string>& pods);

/// What it was given and did not give back, in the order of its replicas.
Result<std::vector<std::string>> allocated_pods(const kube::Metadata& batch);

/// Who holds a pod of a pool.
struct Claim {
    std::string sandbox;  ///< name of the BatchSandbox; empty: nobody
    Timestamp since{};
};
Claim claim_of(const kube::Metadata& pod);

/// The part of a pod that a claim writes, for server-side apply.
json::object claim_content(const kube::Metadata& pod, const std::string& sandbox,
                           const std::string& who, Timestamp at);

/// Ready and nobody's, and not asked to go.
bool is_idle(const Pod& pod);

/// The name of the pool that it was made for; empty for other pods.
std::string pool_of(const kube::Metadata& pod);

}  // namespace opensandbox::runtime::kubernetes
