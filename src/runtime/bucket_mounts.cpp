#include "runtime/bucket_mounts.hpp"

#include "base/scope_exit.hpp"
#include "net/task.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <sys/eventfd.h>

#include <unistd.h>

namespace opensandbox::runtime {
namespace {

/// So many tools run at once.
constexpr std::size_t kThreads = 4;

}  // namespace

BucketMounts::BucketMounts(asio::any_io_executor executor, BucketPlaces places)
    : places_(std::move(places)),
      changing_(std::make_shared<Changing>(executor)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

BucketMounts::~BucketMounts() {
    const std::uint64_t one = 1;
    if (::write(stop_.get(), &one, sizeof one) < 0) return;
}

std::size_t BucketMounts::uses(const std::string& path) const {
    auto at = mounts_.find(path);
    return at == mounts_.end() ? 0 : at->second.uses;
}

asio::thread_pool& BucketMounts::threads() {
    if (!threads_) {
        threads_.emplace(kThreads);
        asio::post(*threads_, [root = places_.root] { sweep_bucket_secrets(root); });
    }
    return *threads_;
}

Awaitable<Status> BucketMounts::run(std::function<Status()> work) {
    co_return co_await net::run_blocking<Status>(threads(), std::move(work));
}

Awaitable<void> BucketMounts::enter(std::string path) {
    const auto changing = changing_;
    while (changing->paths.contains(path)) {
        changing->ended.expires_at(asio::steady_timer::time_point::max());
        boost::system::error_code ignored;
        co_await changing->ended.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    changing->paths.insert(path);
}

void BucketMounts::Changing::leave(const std::string& path) {
    paths.erase(path);
    ended.cancel();
}

Awaitable<Result<std::string>> BucketMounts::acquire(model::Volume volume) {
    auto checked = check_bucket_volume(volume, places_.allowed_host_paths);
    if (!checked) co_return checked.error();
    if (!places_.root.starts_with('/')) {
        co_return Error(
            ErrorCode::internal, "VOLUME::INVALID_OSSFS_MOUNT_ROOT",
            "storage.ossfs_mount_root: '" + places_.root + "' must be an absolute path.");
    }
    std::string digest = bucket_digest(volume);
    std::string path = places_.path(volume, digest);
    co_await enter(path);
    ScopeExit done([changing = changing_, path] { changing->leave(path); });
    auto known = mounts_.find(path);
    bool other = known != mounts_.end() && !known->second.made_with.empty() &&
                 known->second.made_with != digest;
    if (other) {
        co_return Error(ErrorCode::internal, "VOLUME::OSSFS_MOUNT_FAILED",
                        "volumes." + volume.name + ".ossfs: '" + path +
                            "' is in use with other credentials, endpoint or options.");
    }
    BucketMountSettings settings;
    settings.secrets = places_.root;
    settings.access = places_.access;
    settings.stop = stop_.get();
    std::function<Status()> work = [volume, path, settings] {
        return mount_bucket(volume, path, settings);
    };
    auto mounted = co_await run(std::move(work));
    if (!mounted) co_return mounted.error();
    Mount& mount = mounts_[path];
    ++mount.uses;
    if (mount.made_with.empty()) mount.made_with = digest;
    co_return path;
}

Awaitable<Status> BucketMounts::release(std::string path) {
    co_await enter(path);
    ScopeExit done([changing = changing_, path] { changing->leave(path); });
    auto at = mounts_.find(path);
    if (at == mounts_.end()) co_return Status();
    if (at->second.uses > 1) {
        --at->second.uses;
        co_return Status();
    }
    std::function<Status()> work = [path] { return unmount_bucket(path); };
    auto unmounted = co_await run(std::move(work));
    if (!unmounted) co_return unmounted;
    mounts_.erase(path);
    co_return Status();
}

void BucketMounts::cut_off(const std::string& path) {
    if (uses(path) != 1) return;
    asio::post(threads(), [path] { static_cast<void>(cut_off_bucket(path)); });
}

}  // namespace opensandbox::runtime
