#include "runtime/native/ground/layer/overlay.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

/// Acts on files as another user until destroyed.
class FileSystemIds {
  public:
    explicit FileSystemIds(std::uint32_t id) {
        ::setfsuid(id);
        ::setfsgid(id);
    }
    ~FileSystemIds() {
        ::setfsuid(0);
        ::setfsgid(0);
    }
    FileSystemIds(const FileSystemIds&) = delete;
    FileSystemIds& operator=(const FileSystemIds&) = delete;
};

/// The kernel explains a refused mount in messages on the context.
std::string explanation(int context) {
    std::array<char, 512> text{};
    const ssize_t got = ::read(context, text.data(), text.size() - 1);
    if (got <= 0) return {};
    return ": " + std::string(text.data(), static_cast<std::size_t>(got));
}

Status configure(int context, unsigned command, const char* key, int fd) {
    if (::fsconfig(context, command, key, nullptr, fd) < 0) {
        const int number = errno;
        return Error::from_errno(
            number, std::string("overlay ") + (key ? key : "create") + explanation(context));
    }
    return {};
}

/// Where the kernel cannot make its working directory, for want of space or of rights, it mounts
/// read-only and says so to nobody but its log. A sandbox like that would be broken for good.
Status check_writable(int mount, const OverlaySpec& spec) {
    struct statvfs info{};
    if (::fstatvfs(mount, &info) < 0) return last_error("look at the overlay");
    if ((info.f_flag & ST_RDONLY) == 0) return {};
    const std::string probe = std::string(spec.work) + "/probe";
    FileSystemIds as_slot(spec.id_base);
    if (::mkdirat(spec.base, probe.c_str(), 0700) < 0) return last_error("write to the layer");
    (void)::unlinkat(spec.base, probe.c_str(), AT_REMOVEDIR);
    // The kernel has no right to what is reserved for root; we may.
    if (::fstatvfs(spec.base, &info) == 0 && info.f_bavail == 0) {
        return Error::from_errno(ENOSPC, "write to the layer");
    }
    return Error(ErrorCode::io, "the overlay came out read-only");
}

}  // namespace

Result<UniqueFd> clone_tree(const std::filesystem::path& directory, int user_namespace) {
    UniqueFd tree(::open_tree(AT_FDCWD, directory.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!tree) return last_error("open_tree " + directory.string());
    if (user_namespace >= 0) {
        struct mount_attr attributes{};
        attributes.attr_set = MOUNT_ATTR_IDMAP;
        attributes.userns_fd = static_cast<std::uint64_t>(user_namespace);
        if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0) {
            return last_error("shift ids of " + directory.string());
        }
    }
    return tree;
}

Result<Overlay> build_overlay(const OverlaySpec& spec) {
    UniqueFd context(::fsopen("overlay", FSOPEN_CLOEXEC));
    if (!context) return last_error("fsopen overlay");
    Overlay built;
    for (const std::string& path : spec.lowers) {
        auto lower = clone_tree(path, spec.shift_lowers ? spec.user_namespace : -1);
        if (!lower) return lower.error();
        auto status = configure(context.get(), FSCONFIG_SET_FD, "lowerdir+", lower->get());
        if (!status) return status.error().within(path);
        built.scaffold.push_back(std::move(*lower));
    }
    const std::array<std::pair<const char*, const char*>, 2> writable{
        {{"upperdir", spec.upper}, {"workdir", spec.work}}};
    for (const auto& [key, name] : writable) {
        UniqueFd fd(::openat(spec.base, name, O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!fd) return last_error(std::string("open ") + name);
        if (auto s = configure(context.get(), FSCONFIG_SET_FD, key, fd.get()); !s) return s.error();
        built.scaffold.push_back(std::move(fd));
    }
    if (spec.user_attributes &&
        ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "userxattr", nullptr, 0) < 0) {
        return last_error("overlay userxattr");
    }
    // Nothing of a layer outlives its sandbox or the host's run, and snapshots copy what is in the
    // page cache: what is thrown away next need not be written out first.
    if (::fsconfig(context.get(), FSCONFIG_SET_FLAG, "volatile", nullptr, 0) < 0) {
        return last_error("overlay volatile");
    }
    {
        FileSystemIds as_slot(spec.id_base);
        auto status = configure(context.get(), FSCONFIG_CMD_CREATE, nullptr, 0);
        if (!status) return status.error();
    }
    // The superblock belongs to the host's user namespace: only this flag keeps device nodes that
    // an image may hold from opening.
    built.mount.reset(::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV));
    if (!built.mount) return last_error("fsmount overlay");
    if (auto s = check_writable(built.mount.get(), spec); !s) return s.error();
    built.scaffold.push_back(std::move(context));
    return built;
}

Status keep_capabilities_over_id_changes() {
    return check(::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP), "prctl securebits");
}

}  // namespace opensandbox::runtime::native
