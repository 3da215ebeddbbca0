#include "runtime/kubernetes/workload/volumes.hpp"

#include "runtime/kubernetes/names.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::runtime::kubernetes {
namespace {

using model::ClaimVolume;
using model::HostVolume;

constexpr std::array<std::string_view, 2> kOwnVolumes{kAgentVolume, "isolation-upper"};
constexpr std::string_view kMemoryPrefix = "memory-";

Error invalid_volume(const model::Volume& volume, std::string_view rule) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER",
            "volumes." + volume.name + ": " + std::string(rule)};
}

bool same_terms(const ClaimVolume& a, const ClaimVolume& b) {
    return a.create_if_missing == b.create_if_missing &&
           a.delete_with_sandbox == b.delete_with_sandbox && a.storage_class == b.storage_class &&
           a.storage == b.storage && a.access_modes == b.access_modes;
}

/// The first volume of the request that mounts the same claim.
const model::Volume& first_of_claim(const SandboxSpec& spec, const model::Volume& volume) {
    const auto& claim = std::get<ClaimVolume>(volume.backend).claim_name;
    return *std::ranges::find_if(spec.volumes, [&](const model::Volume& other) {
        const auto* same = std::get_if<ClaimVolume>(&other.backend);
        return same && same->claim_name == claim;
    });
}

Status check_volume(const SandboxSpec& spec, const model::Volume& volume,
                    const KubernetesOptions& options) {
    if (std::ranges::find(kOwnVolumes, volume.name) != kOwnVolumes.end() ||
        volume.name.starts_with(kMemoryPrefix)) {
        return invalid_volume(volume, "this name is the server's own.");
    }
    if (std::holds_alternative<HostVolume>(volume.backend)) {
        return check_host_volume(volume, options.allowed_host_paths);
    }
    if (const auto* claim = std::get_if<ClaimVolume>(&volume.backend)) {
        if (!is_valid_sub_path(volume.sub_path)) {
            return Error(ErrorCode::invalid_argument, "VOLUME::INVALID_SUB_PATH",
                         "volumes." + volume.name + ".subPath: must be relative and without '..'.");
        }
        const model::Volume& first = first_of_claim(spec, volume);
        if (!same_terms(*claim, std::get<ClaimVolume>(first.backend))) {
            return invalid_volume(volume,
                                  "mounts of one claim must agree about how it is made and kept.");
        }
    }
    return {};
}

/// Read-only only if all of its mounts are.
bool is_claim_read_only(const SandboxSpec& spec, const std::string& name) {
    return std::ranges::all_of(spec.volumes, [&](const model::Volume& volume) {
        const auto* claim = std::get_if<ClaimVolume>(&volume.backend);
        return !claim || claim->claim_name != name || volume.read_only;
    });
}

std::string memory_name(std::size_t index) {
    return std::string(kMemoryPrefix) + std::to_string(index);
}

}  // namespace

Status check_volumes(const SandboxSpec& spec, const KubernetesOptions& options) {
    for (const model::Volume& volume : spec.volumes) {
        if (auto checked = check_volume(spec, volume, options); !checked) return checked;
    }
    return {};
}

json::array pod_volumes(const SandboxSpec& spec) {
    json::array volumes;
    for (const model::Volume& volume : spec.volumes) {
        json::object made{{"name", volume.name}};
        if (const auto* host = std::get_if<HostVolume>(&volume.backend)) {
            made["hostPath"] = json::object{{"path", host->path}, {"type", "DirectoryOrCreate"}};
        } else if (const auto* claim = std::get_if<ClaimVolume>(&volume.backend)) {
            if (&first_of_claim(spec, volume) != &volume) continue;
            json::object source{{"claimName", claim->claim_name}};
            if (is_claim_read_only(spec, claim->claim_name)) source["readOnly"] = true;
            made["persistentVolumeClaim"] = std::move(source);
        }
        volumes.emplace_back(std::move(made));
    }
    for (std::size_t i = 0; i < spec.memory_volumes.size(); ++i) {
        json::object source{{"medium", "Memory"},
                            {"sizeLimit", std::to_string(spec.memory_volumes[i].size)}};
        volumes.emplace_back(
            json::object{{"name", memory_name(i)}, {"emptyDir", std::move(source)}});
    }
    return volumes;
}

json::array pod_mounts(const SandboxSpec& spec) {
    json::array mounts;
    for (const model::Volume& volume : spec.volumes) {
        const bool is_claim = std::holds_alternative<ClaimVolume>(volume.backend);
        json::object mount{{"name", is_claim ? first_of_claim(spec, volume).name : volume.name},
                           {"mountPath", volume.mount_path}};
        if (volume.read_only) mount["readOnly"] = true;
        if (!volume.sub_path.empty()) mount["subPath"] = volume.sub_path;
        mounts.emplace_back(std::move(mount));
    }
    for (std::size_t i = 0; i < spec.memory_volumes.size(); ++i) {
        mounts.emplace_back(json::object{{"name", memory_name(i)},
                                         {"mountPath", spec.memory_volumes[i].mount_path}});
    }
    return mounts;
}

std::vector<WantedClaim> wanted_claims(const SandboxSpec& spec, const KubernetesOptions& options) {
    std::vector<WantedClaim> claims;
    for (const model::Volume& volume : spec.volumes) {
        const auto* claim = std::get_if<ClaimVolume>(&volume.backend);
        if (!claim || &first_of_claim(spec, volume) != &volume) continue;
        json::object labels;
        if (claim->delete_with_sandbox) {
            labels[label::kVolumeManagedBy] = "server";
            labels[label::kId] = spec.id;
        }
        json::array modes = json::string_array(claim->access_modes);
        if (modes.empty()) modes.emplace_back("ReadWriteOnce");
        json::object wanted{{"accessModes", std::move(modes)}};
        json::object requests{{"storage", claim->storage.value_or(options.claim_size)}};
        wanted["resources"] = json::object{{"requests", std::move(requests)}};
        if (claim->storage_class) wanted["storageClassName"] = *claim->storage_class;
        json::object metadata{{"name", claim->claim_name}};
        if (!labels.empty()) metadata["labels"] = std::move(labels);
        WantedClaim made(claim->claim_name, claim->create_if_missing, claim->delete_with_sandbox);
        made.manifest = json::object{{"apiVersion", "v1"}, {"kind", kClaims.kind}};
        made.manifest["metadata"] = std::move(metadata);
        made.manifest["spec"] = std::move(wanted);
        claims.push_back(std::move(made));
    }
    return claims;
}

}  // namespace opensandbox::runtime::kubernetes
