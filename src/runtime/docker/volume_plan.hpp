#pragma once

#include "model/volume.hpp"
#include "runtime/bucket_mounts.hpp"
#include "runtime/docker/engine/engine.hpp"
#include "runtime/host_volume.hpp"

#include <boost/asio/thread_pool.hpp>

#include <string>
#include <vector>

/// Host directories, named volumes and buckets as binds of a container (lifecycle 2.8).
namespace opensandbox::runtime::docker {

/// What was prepared for one sandbox, and what has to go with it.
struct VolumePlan {
    std::vector<std::string> binds;          ///< "source:target:ro" or ":rw"
    std::vector<std::string> made;           ///< named volumes that this very request made
    std::vector<std::string> managed;        ///< those of them that end with the sandbox
    std::vector<std::string> bucket_mounts;  ///< paths whose use was counted
};

/// Prepares what needs no credentials: host directories and named volumes. Errors VOLUME::* of the
/// contract; `plan.made` is right also after a failure.
Awaitable<Status> plan_volumes(Engine& engine, asio::thread_pool& blocking,
                               AllowedHostPaths allowed, std::vector<model::Volume> volumes,
                               VolumePlan& plan);

/// Mounts the buckets; `plan.bucket_mounts` is right also after a failure.
Awaitable<Status> mount_buckets(BucketMounts& mounts, std::vector<model::Volume> volumes,
                                VolumePlan& plan);

/// Whether a claim may name this volume: not one of those that hold agents or belong to sandboxes.
/// Pure.
bool is_claimable(std::string_view volume);

/// "source:target:ro|rw". `invalid_argument` for paths that a bind cannot hold. Pure.
Result<std::string> bind_of(const model::Volume& volume, const std::string& source);

}  // namespace opensandbox::runtime::docker
