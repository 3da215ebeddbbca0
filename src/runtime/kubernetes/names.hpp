#pragma once

#include "kube/api/resource.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// What our objects in a cluster are called and marked with. The names are the contract's
/// (kubernetes 1.4, 3.1), but those that are ours alone, which say so.
namespace opensandbox::runtime::kubernetes {

inline constexpr std::string_view kGroup = "sandbox.opensandbox.io";
inline constexpr std::string_view kVersion = "v1alpha1";

inline constexpr kube::Resource kBatchSandboxes{kGroup, kVersion, "batchsandboxes", "BatchSandbox"};
inline constexpr kube::Resource kPools{kGroup, kVersion, "pools", "Pool"};
inline constexpr kube::Resource kSnapshots{kGroup, kVersion, "sandboxsnapshots", "SandboxSnapshot"};
inline constexpr kube::Resource kClaims{"", "v1", "persistentvolumeclaims",
                                        "PersistentVolumeClaim"};
inline constexpr kube::Resource kEvents{"", "v1", "events", "Event"};

namespace label {
inline constexpr std::string_view kId = "opensandbox.io/id";
inline constexpr std::string_view kManualCleanup = "opensandbox.io/manual-cleanup";
inline constexpr std::string_view kTenant = "opensandbox.io/tenant";
inline constexpr std::string_view kVolumeManagedBy = "opensandbox.io/volume-managed-by";
/// Of pods that are made for a BatchSandbox.
inline constexpr std::string_view kPodIndex = "batch-sandbox.sandbox.opensandbox.io/pod-index";
inline constexpr std::string_view kBatchName = "batch-sandbox.sandbox.opensandbox.io/name";
/// Of pods of a pool.
inline constexpr std::string_view kPoolName = "sandbox.opensandbox.io/pool-name";
inline constexpr std::string_view kPoolRevision = "sandbox.opensandbox.io/pool-revision";
inline constexpr std::string_view kEvict = "pool.opensandbox.io/evict";
/// Ours alone: whoever claims such a pod by its annotation has it.
inline constexpr std::string_view kClaimable = "opensandbox.io/claimable";
}  // namespace label

namespace annotation {
inline constexpr std::string_view kEgressToken = "opensandbox.io/egress-auth-token";
inline constexpr std::string_view kRenewSeconds = "opensandbox.io/access-renew-extend-seconds";
inline constexpr std::string_view kExtensions = "opensandbox.io/extensions.";  ///< prefix
/// JSON array: an address a replica, "" where there is none.
inline constexpr std::string_view kEndpoints = "sandbox.opensandbox.io/endpoints";
/// Ours alone: JSON array, the UID of the pod behind each of these.
inline constexpr std::string_view kEndpointUids = "opensandbox.io/endpoint-uids";
/// Ours alone: digests of the Idempotency-Key that made it and of that request's body.
inline constexpr std::string_view kIdempotency = "opensandbox.io/idempotency";
/// Ours alone: "all" or "credential-bound", where TLS is intercepted.
inline constexpr std::string_view kInterception = "opensandbox.io/interception-mode";
/// Ours alone: what was asked for, where the pod shows something else.
inline constexpr std::string_view kImage = "opensandbox.io/image";
/// Of a BatchSandbox: {"pods": [names]} that a pool gave it, wants back, and has back.
inline constexpr std::string_view kAllocated = "sandbox.opensandbox.io/alloc-status";
inline constexpr std::string_view kRelease = "sandbox.opensandbox.io/alloc-release";
inline constexpr std::string_view kReleased = "sandbox.opensandbox.io/alloc-released";
/// Ours alone, of a pod: "SANDBOX/WHO/TIME", set by server-side apply without force: the API server
/// lets one have it.
inline constexpr std::string_view kClaimedBy = "opensandbox.io/claimed-by";
/// Ours alone, of a Pool: a digest of the template that its status.revision stands for.
inline constexpr std::string_view kTemplateDigest = "opensandbox.io/template-digest";
}  // namespace annotation

inline constexpr std::string_view kAllocationFinalizer =
    "pool.sandbox.opensandbox.io/pool-allocation";

inline constexpr std::string_view kSandboxContainer = "sandbox";
inline constexpr std::string_view kInstallerContainer = "execd-installer";
inline constexpr std::string_view kEgressContainer = "egress";
inline constexpr std::string_view kAgentVolume = "opensandbox-bin";
inline constexpr std::string_view kAgentTokenVariable = "EXECD_ACCESS_TOKEN";

inline constexpr std::uint16_t kAgentPort = 44772;
inline constexpr std::uint16_t kEgressPort = 18080;

/// The Secret with the registry's login of one sandbox.
inline std::string image_secret_name(std::string_view id) {
    return "opensandbox-image-auth-" + std::string(id);
}

}  // namespace opensandbox::runtime::kubernetes
