#include "lifecycle/admission_checks.hpp"

#include <set>

namespace opensandbox::lifecycle {
namespace {

bool climbs(std::string_view path) {
    return ("/" + std::string(path) + "/").find("/../") != std::string::npos;
}

bool is_root(std::string_view path) {
    return path.find_first_not_of("/.") == std::string_view::npos;
}

Error refuse(const model::Volume& volume, std::string_view code, std::string_view field,
             const std::string& value, std::string_view rule) {
    return {ErrorCode::invalid_argument, "VOLUME::" + std::string(code),
            "volumes." + volume.name + "." + std::string(field) + ": '" + value + "' " +
                std::string(rule)};
}

Status check_paths(const model::Volume& volume) {
    constexpr std::string_view kNul("\0", 1);
    if (volume.sub_path.starts_with('/') || climbs(volume.sub_path) ||
        volume.sub_path.find(kNul) != std::string::npos) {
        return refuse(volume, "INVALID_SUB_PATH", "subPath", volume.sub_path,
                      "must be relative and must not contain '..'.");
    }
    if (is_root(volume.mount_path) || climbs(volume.mount_path) ||
        volume.mount_path.find(kNul) != std::string::npos) {
        return refuse(volume, "INVALID_MOUNT_PATH", "mountPath", volume.mount_path,
                      "must be absolute, below / and without '..'.");
    }
    return {};
}

bool has_backend(const model::Volume& volume, const runtime::Capabilities& capabilities) {
    std::string_view name = model::backend_name(volume);
    if (name == "host") return capabilities.host_volumes;
    if (name == "pvc") return capabilities.claim_volumes;
    return capabilities.bucket_volumes;
}

}  // namespace

Status check_volumes(const model::CreateRequest& request, const AdmissionRules& rules) {
    std::set<std::string> names;
    for (const auto& volume : request.volumes) {
        if (!names.insert(volume.name).second) {
            return Error(ErrorCode::invalid_argument, "VOLUME::DUPLICATE_NAME",
                         "volumes: name '" + volume.name + "' is used twice.");
        }
        if (auto ok = check_paths(volume); !ok) return ok;
    }
    for (const auto& volume : request.volumes) {
        if (has_backend(volume, rules.capabilities)) continue;
        return lacking("volumes." + volume.name + "." + std::string(model::backend_name(volume)),
                       rules);
    }
    return {};
}

}  // namespace opensandbox::lifecycle
