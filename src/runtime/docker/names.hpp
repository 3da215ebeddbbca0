#pragma once

#include "base/error.hpp"
#include "egress/settings/names.hpp"
#include "runtime/egress_sidecar.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

/// What our objects at the engine are called and which labels they carry (lifecycle 6.1). The names
/// are the published server's, so that either can take over from the other.
namespace opensandbox::runtime::docker {

inline constexpr std::string_view kLabelPrefix = "opensandbox.io/";

namespace label {
inline constexpr std::string_view kId = "opensandbox.io/id";
/// The server-id of the state directory that made it; ours alone.
inline constexpr std::string_view kServer = "opensandbox.io/server";
inline constexpr std::string_view kExpiresAt = "opensandbox.io/expires-at";
inline constexpr std::string_view kManualCleanup = "opensandbox.io/manual-cleanup";
inline constexpr std::string_view kPlatformOs = "opensandbox.io/platform-os";
inline constexpr std::string_view kPlatformArch = "opensandbox.io/platform-arch";
inline constexpr std::string_view kSnapshotId = "opensandbox.io/snapshot-id";
inline constexpr std::string_view kRenewSeconds = "opensandbox.io/access-renew-extend-seconds";
inline constexpr std::string_view kExtensions = "opensandbox.io/extensions.";  ///< prefix
inline constexpr std::string_view kAgentPort = "opensandbox.io/embedding-proxy-port";
inline constexpr std::string_view kHttpPort = "opensandbox.io/http-port";
inline constexpr std::string_view kEgressToken = "opensandbox.io/egress-auth-token";
inline constexpr std::string_view kSidecarFor = "opensandbox.io/egress-sidecar-for";
/// Of a container: JSON array of volumes that go with it. Of a volume: "server".
inline constexpr std::string_view kVolumeManagedBy = "opensandbox.io/volume-managed-by";
inline constexpr std::string_view kBucketMounts = "opensandbox.io/ossfs-mounts";
/// Of a volume that holds an agent, and of the container that fills it.
inline constexpr std::string_view kAgent = "opensandbox.io/agent";
/// Host port of 18080: the sidecar's own. Ours alone.
inline constexpr std::string_view kEgressPort = "opensandbox.io/egress-port";
/// Of the sidecar's image that this program makes: its version.
inline constexpr std::string_view kEgressImage = "opensandbox.io/egress-image";
/// Of a sidecar: what its create asked of it beside the policy (remembered_egress.hpp).
inline constexpr std::string_view kEgressRequest = "opensandbox.io/egress-request";
/// Of a snapshot's image: how its sandbox was guarded then (remembered_egress.hpp).
inline constexpr std::string_view kSnapshotEgress = "opensandbox.io/snapshot-egress";
/// Of a snapshot's image: the server-id of who took it.
inline constexpr std::string_view kSnapshotServer = "opensandbox.io/snapshot-server";
}  // namespace label

inline constexpr std::uint16_t kAgentPort = 44772;
inline constexpr std::uint16_t kHttpPort = 8080;
inline constexpr std::uint16_t kEgressPort = 18080;

inline constexpr std::string_view kSnapshotRepository = "opensandbox-snapshots";
/// Where a container finds the agent's volume, read-only, and the directory that belongs to the
/// sandbox around it.
inline constexpr std::string_view kAgentDirectory = "/opt/opensandbox/bin";
inline constexpr std::string_view kRuntimeDirectory = kSharedDirectory;
/// Tells a sandbox's bootstrap that TLS is intercepted.
inline constexpr std::string_view kTransparentVariable = egress::setting::kTransparent;
inline constexpr std::string_view kAgentTokenVariable = "EXECD_ACCESS_TOKEN";

inline std::string container_name(std::string_view id) {
    return "sandbox-" + std::string(id);
}
inline std::string sidecar_name(std::string_view id) {
    return "sandbox-egress-" + std::string(id);
}
inline std::string runtime_volume_name(std::string_view id) {
    return "opensandbox-runtime-" + std::string(id);
}

/// The id of a state directory, from its file `server-id`, made at the first call: what tells our
/// objects at a shared engine from those of other servers. Blocks.
Result<std::string> server_id(const std::filesystem::path& state_directory);

}  // namespace opensandbox::runtime::docker
