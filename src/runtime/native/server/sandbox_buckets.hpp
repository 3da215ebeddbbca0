#pragma once

#include "runtime/bucket_mounts.hpp"
#include "runtime/native/records/protocol.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// `<state>/buckets`: the buckets of this host's sandboxes, one directory for all that ask for the
/// same with the same credentials, and `uses`, which says who does, also after the server was
/// killed. The kernel shifts no ids of such file systems, so their files are open to everybody who
/// can reach the mount: the sandboxes that have it.
class SandboxBuckets {
  public:
    SandboxBuckets(asio::any_io_executor executor, const std::filesystem::path& state_directory,
                   AllowedHostPaths allowed);

    /// Takes up what an earlier server left: uses of sandboxes that are `alive`; the rest is
    /// unmounted in the background.
    Awaitable<void> restore(std::set<std::string> alive);
    /// Mounts the buckets of the spec and makes them the sources of the request's volumes. On
    /// failure nothing is left.
    Awaitable<Status> acquire(std::shared_ptr<const SandboxSpec> spec, CreateRequest& request);
    /// The sandbox is gone. What cannot be unmounted is logged, and tried again by the next server.
    Awaitable<void> release(std::string sandbox);
    [[nodiscard]] bool any(const std::string& sandbox) const { return used_.contains(sandbox); }
    /// Its processes cannot end while they wait for a bucket: those that it alone has are cut off.
    void cut_off(const std::string& sandbox);

  private:
    struct Names;
    Awaitable<Status> prepare();
    Awaitable<Status> mount_all(std::shared_ptr<const SandboxSpec> spec, CreateRequest& request);

    asio::any_io_executor executor_;
    std::filesystem::path root_;
    std::shared_ptr<Names> names_;
    BucketMounts mounts_;
    std::map<std::string, std::vector<std::string>> used_;  ///< paths by sandbox
};

}  // namespace opensandbox::runtime::native
