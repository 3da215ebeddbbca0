#include "runtime/docker/volume_plan.hpp"

#include "net/task.hpp"
#include "runtime/docker/names.hpp"

#include <array>
#include <filesystem>

namespace opensandbox::runtime::docker {
namespace {

Error refusal(const model::Volume& volume, std::string_view code, const std::string& what) {
    return {ErrorCode::invalid_argument, "VOLUME::" + std::string(code),
            "volumes." + volume.name + ": " + what};
}

Awaitable<Result<std::string>> host_source(Engine& engine, asio::thread_pool& blocking,
                                           AllowedHostPaths allowed, model::Volume volume) {
    if (!engine.address().is_local()) {
        // The directory is on the engine's host: only the rules can be checked.
        auto ok = check_host_volume(volume, allowed);
        if (!ok) co_return ok.error();
        const std::string& path = std::get<model::HostVolume>(volume.backend).path;
        co_return volume.sub_path.empty() ? path : path + "/" + volume.sub_path;
    }
    std::function<Result<std::string>()> work = [volume = std::move(volume),
                                                 allowed = std::move(allowed)] {
        return resolve_host_volume(volume, allowed);
    };
    co_return co_await net::run_blocking<Result<std::string>>(blocking, std::move(work));
}

/// A directory of a named volume: only engines' plain volumes are directories of the host.
Result<std::string> sub_directory(const model::Volume& volume, const VolumeInfo& info) {
    bool plain = info.driver == "local" && !info.mountpoint.empty();
    for (const auto& [name, value] : info.options)
        plain = plain && name != "device";
    if (!plain) {
        return refusal(volume, "PVC_SUBPATH_UNSUPPORTED_DRIVER",
                       "subPath needs a volume of the local driver; '" + info.name + "' has '" +
                           info.driver + "'.");
    }
    std::filesystem::path whole = std::filesystem::path(info.mountpoint) / volume.sub_path;
    std::string path = whole.lexically_normal().string();
    std::error_code ec;
    std::string real = std::filesystem::weakly_canonical(path, ec).string();
    std::error_code root_ec;
    std::string root = std::filesystem::weakly_canonical(info.mountpoint, root_ec).string();
    bool readable = !ec && !root_ec;
    if (!is_within(path, info.mountpoint) || (readable && !is_within(real, root))) {
        return refusal(volume, "INVALID_SUB_PATH",
                       "subPath '" + volume.sub_path + "' leads out of the volume.");
    }
    return path;
}

Awaitable<Result<std::string>> claim_source(Engine& engine, model::Volume volume,
                                            VolumePlan& plan) {
    const auto& claim = std::get<model::ClaimVolume>(volume.backend);
    if (!is_claimable(claim.claim_name)) {
        co_return refusal(volume, "INVALID_PVC_NAME",
                          "'" + claim.claim_name + "' is a volume of the server's own.");
    }
    if (!is_valid_sub_path(volume.sub_path)) {
        co_return refusal(
            volume, "INVALID_SUB_PATH",
            "subPath '" + volume.sub_path + "' must be relative and must not contain '..'.");
    }
    auto info = co_await engine.inspect_volume(claim.claim_name);
    if (!info && info.error().code() == ErrorCode::not_found) {
        if (!claim.create_if_missing) {
            co_return refusal(
                volume, "PVC_NOT_FOUND",
                "there is no volume '" + claim.claim_name + "' and createIfNotExists is false.");
        }
        VolumeRequest request(claim.claim_name);
        request.labels.emplace_back(std::string(label::kVolumeManagedBy), "server");
        info = co_await engine.create_volume(std::move(request));
        if (!info && info.error().code() == ErrorCode::invalid_argument) {
            co_return refusal(volume, "INVALID_PVC_NAME", info.error().message());
        }
        if (info) {
            plan.made.push_back(claim.claim_name);
            if (claim.delete_with_sandbox) plan.managed.push_back(claim.claim_name);
        }
    }
    if (!info) {
        co_return Error(ErrorCode::internal, "VOLUME::PVC_INSPECT_FAILED",
                        "volumes." + volume.name + ": " + info.error().message());
    }
    if (volume.sub_path.empty()) co_return claim.claim_name;
    co_return sub_directory(volume, *info);
}

}  // namespace

bool is_claimable(std::string_view volume) {
    constexpr std::array<std::string_view, 3> kOwn{"opensandbox-agent-", "opensandbox-runtime-",
                                                   "opensandbox-win-oem-"};
    for (std::string_view own : kOwn) {
        if (volume.starts_with(own)) return false;
    }
    return true;
}

Result<std::string> bind_of(const model::Volume& volume, const std::string& source) {
    if (source.find(':') != std::string::npos) {
        return refusal(volume, "INVALID_HOST_PATH", "'" + source + "' must not contain ':'.");
    }
    if (volume.mount_path.find(':') != std::string::npos) {
        return refusal(volume, "INVALID_MOUNT_PATH",
                       "mountPath '" + volume.mount_path + "' must not contain ':'.");
    }
    return source + ":" + volume.mount_path + (volume.read_only ? ":ro" : ":rw");
}

Awaitable<Status> plan_volumes(Engine& engine, asio::thread_pool& blocking,
                               AllowedHostPaths allowed, std::vector<model::Volume> volumes,
                               VolumePlan& plan) {
    for (const model::Volume& volume : volumes) {
        // Before anything is made for it.
        auto sayable = bind_of(volume, "/");
        if (!sayable) co_return sayable.error();
        Result<std::string> source = std::string();
        if (std::holds_alternative<model::HostVolume>(volume.backend)) {
            source = co_await host_source(engine, blocking, allowed, volume);
        } else if (std::holds_alternative<model::ClaimVolume>(volume.backend)) {
            source = co_await claim_source(engine, volume, plan);
        } else {
            continue;  // buckets are mounted later
        }
        if (!source) co_return source.error();
        auto bind = bind_of(volume, *source);
        if (!bind) co_return bind.error();
        plan.binds.push_back(std::move(*bind));
    }
    co_return Status();
}

Awaitable<Status> mount_buckets(BucketMounts& mounts, std::vector<model::Volume> volumes,
                                VolumePlan& plan) {
    for (const model::Volume& volume : volumes) {
        if (!std::holds_alternative<model::BucketVolume>(volume.backend)) continue;
        auto path = co_await mounts.acquire(volume);
        if (!path) co_return path.error();
        plan.bucket_mounts.push_back(*path);
        auto bind = bind_of(volume, *path);
        if (!bind) co_return bind.error();
        plan.binds.push_back(std::move(*bind));
    }
    co_return Status();
}

}  // namespace opensandbox::runtime::docker
