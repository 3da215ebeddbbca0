#include "runtime/native/inside/volume_mount.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

UniqueFd open_resolved(int directory, const std::string& path, std::uint64_t flags,
                       std::uint64_t resolve) {
    open_how how{};
    how.flags = flags | O_PATH | O_CLOEXEC;
    how.resolve = resolve | RESOLVE_NO_MAGICLINKS;
    return UniqueFd(
        static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
}

/// Makes the directories of `path` that are missing below `root`; links are followed as `resolve`
/// says. The last part becomes an empty file when `file` is set.
Result<UniqueFd> open_or_make(int root, std::string_view path, std::uint64_t resolve, bool file) {
    std::string walked = ".";
    UniqueFd at = open_resolved(root, walked, O_DIRECTORY, resolve);
    if (!at) return last_error("open the root");
    while (!path.empty()) {
        const std::string part(path.substr(0, path.find('/')));
        path.remove_prefix(std::min(path.size(), part.size() + 1));
        if (part.empty() || part == ".") continue;
        if (part == "..") return Error(ErrorCode::invalid_argument, "must not contain '..'");
        const bool last = path.find_first_not_of('/') == std::string_view::npos;
        walked += "/" + part;
        UniqueFd next = open_resolved(root, walked, 0, resolve);
        if (!next && errno == ENOENT) {
            if (last && file) {
                UniqueFd made(::openat(at.get(), part.c_str(),
                                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
                if (!made) return last_error("make " + part);
            } else if (::mkdirat(at.get(), part.c_str(), 0755) < 0) {
                return last_error("make " + part);
            }
            next = open_resolved(root, walked, 0, resolve);
        }
        if (!next) return last_error("open " + part);
        at = std::move(next);
    }
    return at;
}

Error refused(const VolumeMount& volume, std::string_view code, const Error& reason) {
    return {ErrorCode::invalid_argument, "VOLUME::" + std::string(code),
            "volumes." + volume.name + ": " + reason.message()};
}

/// Says so without asking the file system, which may not answer.
bool is_mount_root(int file) {
    struct statx info{};
    return ::statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) == 0 &&
           (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

Status set_attributes(int mount, const VolumeMount& volume, int user_namespace) {
    struct mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (volume.read_only) attributes.attr_set |= MOUNT_ATTR_RDONLY;
    if (user_namespace >= 0) {
        attributes.attr_set |= MOUNT_ATTR_IDMAP;
        attributes.userns_fd = static_cast<std::uint64_t>(user_namespace);
    }
    if (::mount_setattr(mount, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0) return {};
    const Error error = last_error("volumes." + volume.name);
    if (errno != EINVAL) return error;
    return Error(ErrorCode::unsupported, "VOLUME::INVALID_HOST_PATH",
                 "volumes." + volume.name + ": the file system of " + volume.source +
                     " cannot shift ids into a sandbox.");
}

}  // namespace

Result<UniqueFd> make_volume_mount(const VolumeMount& volume, int user_namespace) {
    // Its real path was found before; a link that appeared since is somebody's attempt.
    UniqueFd source = open_resolved(AT_FDCWD, volume.source, 0, RESOLVE_NO_SYMLINKS);
    if (!source) return refused(volume, "INVALID_HOST_PATH", last_error("open " + volume.source));
    // Nobody may write where the bucket should be.
    if (volume.bucket && !is_mount_root(source.get())) {
        return Error(ErrorCode::internal, "VOLUME::OSSFS_MOUNT_FAILED",
                     "volumes." + volume.name + ".ossfs: is not mounted.");
    }
    if (!volume.sub_path.empty()) {
        auto inner = open_or_make(source.get(), volume.sub_path, RESOLVE_BENEATH, false);
        if (!inner) return refused(volume, "INVALID_SUB_PATH", inner.error());
        source = std::move(*inner);
    }
    UniqueFd mount(
        ::open_tree(source.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!mount) return last_error("volumes." + volume.name + ": clone the mount");
    auto set = set_attributes(mount.get(), volume, user_namespace);
    // Programs that serve buckets know nothing of shifted ids; they open their files to everybody.
    const bool unshifted = !set && volume.bucket && set.error().code() == ErrorCode::unsupported;
    if (unshifted) set = set_attributes(mount.get(), volume, -1);
    if (!set) return set.error();
    return mount;
}

Result<UniqueFd> make_memory_mount(const VolumeMount& volume) {
    UniqueFd context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
    if (!context) return last_error("fsopen tmpfs");
    const std::string size = std::to_string(volume.size);
    for (const auto& [key, value] :
         {std::pair<const char*, const char*>{"size", size.c_str()}, {"mode", "1777"}}) {
        if (::fsconfig(context.get(), FSCONFIG_SET_STRING, key, value, 0) < 0) {
            return last_error(std::string("tmpfs ") + key);
        }
    }
    if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0) {
        return last_error("make a tmpfs");
    }
    UniqueFd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
    if (!mount) return last_error("fsmount tmpfs");
    return mount;
}

Status attach_volume(int root, const VolumeMount& volume, UniqueFd mount) {
    bool file = false;
    // A bucket is a directory; asking its program might take forever.
    if (!volume.bucket) {
        struct stat info{};
        if (::fstat(mount.get(), &info) < 0) return last_error("volumes." + volume.name);
        file = !S_ISDIR(info.st_mode);
    }
    auto target = open_or_make(root, volume.target, RESOLVE_IN_ROOT, file);
    if (!target) return refused(volume, "INVALID_MOUNT_PATH", target.error());
    if (::move_mount(mount.get(), "", target->get(), "",
                     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) {
        return refused(volume, "INVALID_MOUNT_PATH", last_error("mount on " + volume.target));
    }
    return {};
}

}  // namespace opensandbox::runtime::native
