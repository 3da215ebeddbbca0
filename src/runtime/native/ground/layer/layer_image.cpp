#include "runtime/native/ground/layer/layer_image.hpp"

#include "base/identifier.hpp"
#include "base/scope_exit.hpp"
#include "runtime/host_command.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 64;
constexpr std::uint64_t kStatBlock = 512;
constexpr std::chrono::seconds kMkfsLimit{60};

Status copy_range(int from, int to, off_t begin, off_t end) {
    std::array<char, 128 << 10> buffer{};
    while (begin < end) {
        const auto wanted =
            std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(end - begin));
        const ssize_t got = ::pread(from, buffer.data(), wanted, begin);
        if (got <= 0) return last_error("read a layer's template");
        if (::pwrite(to, buffer.data(), static_cast<std::size_t>(got), begin) != got) {
            return last_error("write a layer's image");
        }
        begin += got;
    }
    return {};
}

/// Of a fresh file system hardly anything is written: holes stay holes.
Status copy_sparse(const fs::path& from, const fs::path& to) {
    UniqueFd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!source) return last_error("open " + from.string());
    UniqueFd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!target) return last_error("create " + to.string());
    struct stat info{};
    if (::fstat(source.get(), &info) < 0 || ::ftruncate(target.get(), info.st_size) < 0) {
        return last_error("size " + to.string());
    }
    off_t at = 0;
    while (true) {
        const off_t data = ::lseek(source.get(), at, SEEK_DATA);
        if (data < 0) return errno == ENXIO ? Status() : last_error("seek in " + from.string());
        at = ::lseek(source.get(), data, SEEK_HOLE);
        if (at < 0) return last_error("seek in " + from.string());
        if (auto s = copy_range(source.get(), target.get(), data, at); !s) return s;
    }
}

/// A loop device over the file, which goes with its last user.
Result<std::string> attach_loop(const fs::path& image, UniqueFd& keep) {
    UniqueFd file(::open(image.c_str(), O_RDWR | O_CLOEXEC));
    if (!file) return last_error("open " + image.string());
    UniqueFd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    if (!control) return last_error("open /dev/loop-control");
    for (int round = 0; round < kAttempts; ++round) {
        const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
        if (number < 0) return last_error("find a loop device");
        const std::string path = "/dev/loop" + std::to_string(number);
        keep.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        if (!keep) {
            // Its node may come a moment later.
            if (errno != ENOENT && errno != ENXIO) return last_error("open " + path);
            ::usleep(1000);
            continue;
        }
        struct loop_config config{};
        config.fd = static_cast<__u32>(file.get());
        config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
        if (::ioctl(keep.get(), LOOP_CONFIGURE, &config) == 0) return path;
        // Somebody else was faster.
        if (errno != EBUSY) return last_error("configure " + path);
    }
    return Error(ErrorCode::resource_exhausted, "no loop device is free");
}

}  // namespace

fs::path layer_directory(const fs::path& slot) {
    const fs::path own = slot / kLayerMount;
    return ::access(own.c_str(), F_OK) == 0 ? own : slot;
}

Result<fs::path> ensure_layer_template(const fs::path& state_directory, std::uint64_t bytes) {
    const fs::path directory = state_directory / "layer-templates";
    const fs::path path = directory / (std::to_string(bytes) + ".img");
    if (::access(path.c_str(), R_OK) == 0) return path;
    if (::mkdir(directory.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + directory.string());
    }
    // Spawner and workers may make it at the same time.
    const fs::path fresh = directory / (new_hex_id() + ".new");
    ScopeExit discard([&] { ::unlink(fresh.c_str()); });
    UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return last_error("create " + fresh.string());
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) < 0) {
        return last_error("size " + fresh.string());
    }
    // Nothing is reserved, and a layer does not survive its machine: it needs no journal.
    auto made = run_host_command({"mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-E",
                                  "lazy_itable_init=1,nodiscard,root_owner=0:0", fresh.string()},
                                 kMkfsLimit);
    if (!made && made.error().code() == ErrorCode::not_found) {
        return Error(ErrorCode::unsupported,
                     "limiting the writable layer needs mkfs.ext4 on the host (e2fsprogs)");
    }
    if (!made) return made.error();
    if (::rename(fresh.c_str(), path.c_str()) < 0) return last_error("rename " + fresh.string());
    discard.dismiss();
    return path;
}

Status mount_layer(const fs::path& state_directory, const fs::path& slot, std::uint64_t bytes) {
    auto known = ensure_layer_template(state_directory, bytes);
    if (!known) return known.error();
    const fs::path image = slot / kLayerFile;
    const fs::path target = slot / kLayerMount;
    if (auto s = copy_sparse(*known, image); !s) return s;
    UniqueFd device;
    auto path = attach_loop(image, device);
    if (!path) return path.error();
    if (auto s = check(::mkdir(target.c_str(), 0755), "mkdir " + target.string()); !s) return s;
    auto mounted = check(::mount(path->c_str(), target.c_str(), "ext4", MS_NOSUID | MS_NODEV,
                                 "discard,errors=continue"),
                         "mount " + target.string());
    if (!mounted) {
        ::rmdir(target.c_str());
        return mounted;
    }
    ::rmdir((target / "lost+found").c_str());
    return {};
}

Status unmount_layer(const fs::path& slot) {
    const fs::path target = slot / kLayerMount;
    if (::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != ENOENT &&
        errno != EINVAL) {
        return last_error("unmount " + target.string());
    }
    return {};
}

std::optional<std::uint64_t> layer_usage(const fs::path& slot) {
    struct stat outer{};
    struct stat inner{};
    const fs::path target = slot / kLayerMount;
    if (::stat(slot.c_str(), &outer) < 0 || ::stat(target.c_str(), &inner) < 0) return std::nullopt;
    struct statvfs info{};
    if (outer.st_dev == inner.st_dev || ::statvfs(target.c_str(), &info) < 0) return std::nullopt;
    return (info.f_blocks - info.f_bfree) * info.f_frsize;
}

std::uint64_t directory_usage(const fs::path& directory, std::size_t most) {
    std::uint64_t bytes = 0;
    std::error_code error;
    fs::recursive_directory_iterator entry(directory, error);
    const fs::recursive_directory_iterator end;
    for (std::size_t count = 0; !error && entry != end && count < most; ++count) {
        struct stat info{};
        if (::lstat(entry->path().c_str(), &info) == 0 &&
            (S_ISDIR(info.st_mode) || info.st_nlink > 0)) {
            // A file of several names counts once, as near as one can without remembering them.
            const std::uint64_t names = S_ISDIR(info.st_mode) ? 1 : info.st_nlink;
            bytes += static_cast<std::uint64_t>(info.st_blocks) * kStatBlock / names;
        }
        entry.increment(error);
    }
    return bytes;
}

}  // namespace opensandbox::runtime::native
