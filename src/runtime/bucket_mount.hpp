#pragma once

#include "runtime/bucket_command.hpp"

#include <filesystem>
#include <string>

/// One bucket on this host's tree. All functions block, each for less than two minutes.
namespace opensandbox::runtime {

/// How it is mounted, beside what the volume says.
struct BucketMountSettings {
    BucketMountSettings() = default;
    std::filesystem::path secrets;  ///< a directory for files of this user that live as long as
                                    ///< the tool's start
    BucketAccess access = BucketAccess::as_asked;
    int stop = -1;  ///< descriptor; when it is readable the tool is ended
};

/// Mounts it at `path`, which is made, unless it is mounted there and answers; a mount whose
/// program is dead is replaced. On failure nothing is left. VOLUME::INVALID_OSSFS_MOUNT_ROOT,
/// VOLUME::OSSFS_MOUNT_FAILED with the tool's last words.
Status mount_bucket(const model::Volume& volume, const std::string& path,
                    const BucketMountSettings& settings);

/// Unmounts and removes the directory. What does not let go is cut off: its files fail from then
/// on. VOLUME::OSSFS_UNMOUNT_FAILED.
Status unmount_bucket(const std::string& path);

/// Cuts off a mount whose program does not answer, also for those that have a copy of it.
Status cut_off_bucket(const std::string& path);

/// Mount points directly below the directory, as paths.
std::vector<std::string> mounts_below(const std::string& directory);

/// Removes files of credentials that a killed server left there.
void sweep_bucket_secrets(const std::filesystem::path& directory);

}  // namespace opensandbox::runtime
