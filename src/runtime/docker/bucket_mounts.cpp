#include "runtime/docker/bucket_mounts.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "image/digest.hpp"
#include "net/task.hpp"
#include "runtime/host_command.hpp"

#include <boost/asio/redirect_error.hpp>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::chrono::seconds kLimit{30};
constexpr mode_t kPrivate = 0600;

Error mount_failure(const model::Volume& volume, const std::string& what) {
    return {ErrorCode::internal, "VOLUME::OSSFS_MOUNT_FAILED",
            "volumes." + volume.name + ".ossfs: " + what};
}

/// A file that only this user reads, gone when destroyed.
class SecretFile {
  public:
    static Result<std::unique_ptr<SecretFile>> write(const std::string& content) {
        auto directory = std::filesystem::temp_directory_path();
        std::string path = (directory / ("opensandbox-ossfs-" + new_hex_id())).string();
        UniqueFd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivate));
        if (!out) return Error::from_errno(errno, "make " + path);
        auto file = std::make_unique<SecretFile>(path);
        auto written = ::write(out.get(), content.data(), content.size());
        if (written != static_cast<ssize_t>(content.size())) {
            return Error::from_errno(errno, "write " + path);
        }
        return file;
    }
    explicit SecretFile(std::string p) : path(std::move(p)) {}
    SecretFile(const SecretFile&) = delete;
    SecretFile& operator=(const SecretFile&) = delete;
    ~SecretFile() { ::unlink(path.c_str()); }

    const std::string path;
};

/// Blanks in paths of mountinfo are written as octal numbers.
std::string unescaped(const std::string& text) {
    constexpr std::size_t kDigits = 3;
    constexpr int kOctal = 8;
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + kDigits < text.size()) {
            out += static_cast<char>(std::stoi(text.substr(i + 1, kDigits), nullptr, kOctal));
            i += kDigits;
        } else {
            out += text[i];
        }
    }
    return out;
}

bool is_mounted(const std::string& path) {
    std::ifstream mounts("/proc/self/mountinfo");
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string point;
    std::string rest;
    while (mounts >> id >> parent >> device >> root >> point && std::getline(mounts, rest)) {
        if (unescaped(point) == path) return true;
    }
    return false;
}

Status mount_bucket(const model::Volume& volume, const std::string& path) {
    if (is_mounted(path)) return {};
    std::error_code ec;
    std::filesystem::create_directories(path, ec);
    if (ec) {
        return Error(
            ErrorCode::internal, "VOLUME::INVALID_OSSFS_MOUNT_ROOT",
            "volumes." + volume.name + ".ossfs: cannot make '" + path + "': " + ec.message());
    }
    BucketCommand command = bucket_command(volume, path);
    auto secret = SecretFile::write(command.secret);
    if (!secret) return mount_failure(volume, secret.error().message());
    for (std::string& word : command.argv) {
        if (std::size_t at = word.find("{secret}"); at != std::string::npos) {
            word.replace(at, std::string_view("{secret}").size(), secret.value()->path);
        }
    }
    auto ran = run_host_command(command.argv, kLimit);
    if (!ran) return mount_failure(volume, ran.error().message());
    return {};
}

Status unmount_bucket(const std::string& path) {
    if (!is_mounted(path)) return {};
    auto ran = run_host_command({"fusermount", "-u", path}, kLimit);
    if (!ran) ran = run_host_command({"umount", path}, kLimit);
    if (!ran && is_mounted(path)) {
        return Error(ErrorCode::internal, "VOLUME::OSSFS_UNMOUNT_FAILED", ran.error().message());
    }
    return {};
}

std::string digest_of(const model::Volume& volume) {
    BucketCommand command = bucket_command(volume, "");
    std::string all = command.secret;
    for (const std::string& word : command.argv)
        all += word + '\n';
    return image::sha256_hex(all);
}

}  // namespace

BucketMounts::BucketMounts(asio::any_io_executor executor, asio::thread_pool& blocking,
                           std::string root)
    : blocking_(blocking), root_(std::move(root)), changed_(executor) {}

std::size_t BucketMounts::uses(const std::string& path) const {
    auto at = mounts_.find(path);
    return at == mounts_.end() ? 0 : at->second.uses;
}

Awaitable<void> BucketMounts::enter(std::string path) {
    while (changing_.contains(path)) {
        changed_.expires_at(asio::steady_timer::time_point::max());
        boost::system::error_code ignored;
        co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    changing_.insert(path);
}

void BucketMounts::leave(const std::string& path) {
    changing_.erase(path);
    changed_.cancel();
}

Awaitable<Result<std::string>> BucketMounts::acquire(const model::Volume& volume) {
    auto checked = check_bucket_volume(volume);
    if (!checked) co_return checked.error();
    if (!root_.starts_with('/')) {
        co_return Error(ErrorCode::internal, "VOLUME::INVALID_OSSFS_MOUNT_ROOT",
                        "storage.ossfs_mount_root: '" + root_ + "' must be an absolute path.");
    }
    std::string path = bucket_path(root_, volume);
    std::string digest = digest_of(volume);
    co_await enter(path);
    ScopeExit done([this, path] { leave(path); });
    auto known = mounts_.find(path);
    bool other = known != mounts_.end() && !known->second.made_with.empty() &&
                 known->second.made_with != digest;
    if (other) {
        co_return mount_failure(volume, "'" + path +
                                            "' is in use with other credentials, endpoint or "
                                            "options.");
    }
    std::function<Status()> work = [volume, path] { return mount_bucket(volume, path); };
    auto mounted = co_await net::run_blocking<Status>(blocking_, std::move(work));
    if (!mounted) co_return mounted.error();
    Mount& mount = mounts_[path];
    ++mount.uses;
    if (mount.made_with.empty()) mount.made_with = digest;
    co_return path;
}

Awaitable<Status> BucketMounts::release(std::string path) {
    co_await enter(path);
    ScopeExit done([this, path] { leave(path); });
    auto at = mounts_.find(path);
    if (at == mounts_.end()) co_return Status();
    if (at->second.uses > 1) {
        --at->second.uses;
        co_return Status();
    }
    std::function<Status()> work = [path] { return unmount_bucket(path); };
    auto unmounted = co_await net::run_blocking<Status>(blocking_, std::move(work));
    if (!unmounted) co_return unmounted;
    mounts_.erase(path);
    co_return Status();
}

}  // namespace opensandbox::runtime::docker
