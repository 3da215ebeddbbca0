#pragma once

#include "base/unique_fd.hpp"
#include "model/volume.hpp"
#include "net/stream.hpp"
#include "runtime/bucket_command.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::runtime {

// One bucket on this host's tree (bucket_mount.cpp). All functions block, each for less than two
// minutes.

/// How it is mounted, beside what the volume says.
struct BucketMountSettings {
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

/// Where a runtime has its buckets, and how.
struct BucketPlaces {
    std::string root;  ///< absolute directory; made when it is needed
    /// Where below `root` a volume belongs. `digest` is the one of everything it depends on.
    std::function<std::string(const model::Volume&, const std::string& digest)> path;
    BucketAccess access = BucketAccess::as_asked;
    AllowedHostPaths allowed_host_paths;  ///< that options may name
};

/// Buckets mounted on this host through ossfs, shared among sandboxes and counted per path
/// (lifecycle 2.8). Its tools run on threads of its own: one that hangs keeps nobody else waiting.
class BucketMounts {
  public:
    BucketMounts(asio::any_io_executor executor, BucketPlaces places);
    /// Ends the tools that run; mounts stay.
    ~BucketMounts();
    BucketMounts(const BucketMounts&) = delete;
    BucketMounts& operator=(const BucketMounts&) = delete;

    /// Mounts it unless it is mounted, counts one use, returns the path. The errors of
    /// check_bucket_volume() and mount_bucket(); VOLUME::OSSFS_MOUNT_FAILED also when the path is
    /// in use with other credentials, endpoint or options: a mount is not shared on the word of its
    /// name.
    Awaitable<Result<std::string>> acquire(model::Volume volume);
    /// Ends one use; the last one unmounts. VOLUME::OSSFS_UNMOUNT_FAILED keeps the use. A path that
    /// is not in use is left alone.
    Awaitable<Status> release(std::string path);
    /// Counts a use that was made before this server began.
    void restore(const std::string& path) { ++mounts_[path].uses; }
    [[nodiscard]] std::size_t uses(const std::string& path) const;
    /// Cuts off what a single sandbox uses and hangs in; it stays in use.
    void cut_off(const std::string& path);
    /// Runs something that blocks on the same threads.
    Awaitable<Status> run(std::function<Status()> work);

  private:
    struct Mount {
        std::size_t uses = 0;
        std::string made_with;  ///< digest of the request's secrets; empty: made by another server
    };
    /// Paths that somebody mounts or unmounts.
    struct Changing {
        explicit Changing(const asio::any_io_executor& executor) : ended(executor) {}
        void leave(const std::string& path);
        std::set<std::string> paths;
        asio::steady_timer ended;  ///< cancelled with each that ends
    };
    /// Waits until nobody else mounts or unmounts that path.
    Awaitable<void> enter(std::string path);
    asio::thread_pool& threads();

    BucketPlaces places_;
    std::map<std::string, Mount> mounts_;
    /// Shared with those who wait for a tool: the last of them end after this object, with the
    /// server's event loop.
    std::shared_ptr<Changing> changing_;
    UniqueFd stop_;                             ///< readable when the tools have to end
    std::optional<asio::thread_pool> threads_;  ///< since the first bucket
};

}  // namespace opensandbox::runtime
