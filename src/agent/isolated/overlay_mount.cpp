#include "agent/isolated/overlay_mount.hpp"

#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// A descriptor that is closed at the end of a scope, errno kept.
class Opened {
  public:
    explicit Opened(int fd) : fd_(fd) {}
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() {
        int kept = errno;
        if (fd_ >= 0) ::close(fd_);
        errno = kept;
    }
    [[nodiscard]] int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

int open_directory(const char* path) {
    return ::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/// The name of an open directory: nothing has to be escaped, and it cannot come to mean another.
std::array<char, 32> name_of(int directory) {
    std::array<char, 32> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", directory);
    return path;
}

bool set_option(int context, const char* key, const char* value) {
    return ::syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

bool make_parents(const char* path) {
    std::array<char, PATH_MAX> name{};
    std::size_t size = std::strlen(path);
    if (size >= name.size()) {
        errno = ENAMETOOLONG;
        return false;
    }
    std::memcpy(name.data(), path, size);
    for (std::size_t at = 1; at < size; ++at) {
        if (name[at] != '/') continue;
        name[at] = '\0';
        struct stat info{};
        if (::stat(name.data(), &info) != 0 && ::mkdir(name.data(), 0755) != 0 && errno != EEXIST) {
            return false;
        }
        name[at] = '/';
    }
    return true;
}

}  // namespace

bool needs_user_attributes() {
    struct stat info{};
    constexpr ino_t kInitialUserNamespace = 0xEFFFFFFDU;
    return ::stat("/proc/self/ns/user", &info) == 0 && info.st_ino != kInitialUserNamespace;
}

int make_overlay(int lower, int upper, int work, bool user_attributes) {
    return make_overlay(name_of(lower).data(), name_of(upper).data(), name_of(work).data(),
                        user_attributes);
}

int make_overlay(const char* lower, const char* upper, const char* work, bool user_attributes) {
    Opened context(static_cast<int>(::syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC)));
    if (!context) return -1;
    if (!set_option(context.get(), "source", "overlay") ||
        !set_option(context.get(), "lowerdir", lower) ||
        !set_option(context.get(), "upperdir", upper) ||
        !set_option(context.get(), "workdir", work)) {
        return -1;
    }
    // A renamed directory is copied: the upper alone says what changed. Old kernels lack some. With
    // marks that users may write it is so by itself, and "off" can mean "follow", which is refused.
    if (!user_attributes) {
        set_option(context.get(), "redirect_dir", "off");
        set_option(context.get(), "metacopy", "off");
    }
    set_option(context.get(), "index", "off");
    if (user_attributes &&
        ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_FLAG, "userxattr", nullptr, 0) != 0) {
        return -1;
    }
    if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
        return -1;
    }
    return static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC,
                                      MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID));
}

bool make_target(const char* target, bool directory) {
    struct stat info{};
    if (::stat(target, &info) == 0) {
        if (S_ISDIR(info.st_mode) == directory) return true;
        errno = directory ? ENOTDIR : EISDIR;
        return false;
    }
    if (!make_parents(target)) return false;
    if (directory) return ::mkdir(target, 0755) == 0;
    Opened file(::open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    return static_cast<bool>(file);
}

int open_overlay(const Attachment& attachment, int lower) {
    if (attachment.in_memory) {
        if (!make_target(attachment.upper.c_str(), true)) return -1;
        if (!make_target(attachment.work.c_str(), true)) return -1;
    }
    Opened upper(open_directory(attachment.upper.c_str()));
    Opened work(open_directory(attachment.work.c_str()));
    if (!upper || !work) return -1;
    // The top of an overlay looks like its upper.
    struct stat info{};
    if (::fstat(lower, &info) != 0) return -1;
    if (::chown(attachment.upper.c_str(), info.st_uid, info.st_gid) != 0) return -1;
    if (::chmod(attachment.upper.c_str(), info.st_mode & 07777) != 0) return -1;
    return make_overlay(lower, upper.get(), work.get(), attachment.user_attributes);
}

bool attach_mount(int mount, const char* target, bool directory) {
    if (!make_target(target, directory)) return false;
    return ::syscall(SYS_move_mount, mount, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

bool set_mount_attributes(int directory, const char* path, unsigned long set, unsigned long clear,
                          bool recursive) {
    mount_attr attributes{};
    attributes.attr_set = set;
    attributes.attr_clr = clear;
    unsigned flags = recursive ? AT_RECURSIVE : 0;
    if (path[0] == '\0') flags |= AT_EMPTY_PATH;
    return ::syscall(SYS_mount_setattr, directory, path, flags, &attributes, sizeof attributes) ==
           0;
}

}  // namespace opensandbox::agent
