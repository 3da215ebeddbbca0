#pragma once

#include "model/volume.hpp"
#include "net/stream.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::runtime::docker {

/// How one bucket is mounted. Pure.
struct BucketCommand {
    BucketCommand() = default;
    std::vector<std::string> argv;  ///< `{secret}` stands for the path of the file below
    std::string secret;             ///< content of a private file that lives as long as the command
};

/// The rules of lifecycle 2.8: bucket, endpoint, options, credentials, version, sub_path. Errors
/// VOLUME::INVALID_OSSFS_*, VOLUME::INVALID_SUB_PATH. Pure.
Status check_bucket_volume(const model::Volume& volume);

/// `<root>/<bucket>[/<subPath>]`. Pure.
std::string bucket_path(const std::string& root, const model::Volume& volume);

/// The command line of ossfs (version 1.0) or ossfs2 (2.0). Pure.
BucketCommand bucket_command(const model::Volume& volume, const std::string& path);

/// Buckets mounted on this host through ossfs, shared among sandboxes and counted per path
/// (lifecycle 2.8). Blocking parts run on `blocking`, which is borrowed.
class BucketMounts {
  public:
    BucketMounts(asio::any_io_executor executor, asio::thread_pool& blocking, std::string root);

    /// Mounts it unless it is mounted, counts one use, returns the path.
    /// VOLUME::INVALID_OSSFS_MOUNT_ROOT, VOLUME::OSSFS_MOUNT_FAILED (also when the path is in use
    /// with other credentials, endpoint or options: a mount is not shared on the word of its name).
    Awaitable<Result<std::string>> acquire(const model::Volume& volume);
    /// Ends one use; the last one unmounts. VOLUME::OSSFS_UNMOUNT_FAILED keeps the use. A path that
    /// is not in use is left alone.
    Awaitable<Status> release(std::string path);
    /// Counts a use that was made before this server began.
    void restore(const std::string& path) { ++mounts_[path].uses; }
    [[nodiscard]] std::size_t uses(const std::string& path) const;

  private:
    struct Mount {
        std::size_t uses = 0;
        std::string made_with;  ///< digest of the request's secrets; empty: made by another server
    };
    /// Waits until nobody else mounts or unmounts that path.
    Awaitable<void> enter(std::string path);
    void leave(const std::string& path);

    asio::thread_pool& blocking_;
    std::string root_;
    std::map<std::string, Mount> mounts_;
    std::set<std::string> changing_;
    asio::steady_timer changed_;
};

}  // namespace opensandbox::runtime::docker
