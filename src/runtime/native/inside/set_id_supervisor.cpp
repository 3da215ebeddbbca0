#include "runtime/native/inside/set_id_supervisor.hpp"

#include "runtime/native/ground/confinement/caller.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <fcntl.h>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

constexpr const char* kCapabilityAttribute = "security.capability";
constexpr mode_t kSetIdModes = S_ISUID | S_ISGID;

using MountId = std::uint64_t;

Result<MountId> mount_of(int directory, const char* path) {
    struct statx info{};
    constexpr int kFlags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
    if (::statx(directory, path, kFlags, STATX_MNT_ID, &info) < 0) return last_error(path);
    if ((info.stx_mask & STATX_MNT_ID) == 0) {
        return Error(ErrorCode::unsupported, "the kernel names no mounts");
    }
    return info.stx_mnt_id;
}

/// Mounts on which files may have such rights: the sandbox's own.
Result<std::set<MountId>> own_mounts(const std::vector<VolumeMount>& volumes) {
    std::set<MountId> own;
    for (const char* path : {"/", "/usr"}) {
        if (auto mount = mount_of(AT_FDCWD, path)) own.insert(*mount);
    }
    std::set<MountId> reachable;
    for (const VolumeMount& volume : volumes) {
        auto mount = mount_of(AT_FDCWD, volume.target.c_str());
        if (!mount) return mount.error();
        (volume.reachable ? reachable : own).insert(*mount);
    }
    for (const MountId mount : reachable)
        own.erase(mount);
    return own;
}

class Supervisor {
  public:
    Supervisor(UniqueFd listener, std::set<MountId> own)
        : listener_(std::move(listener)), own_(std::move(own)) {}

    /// Until no process is left that could ask.
    void run() const {
        while (true) {
            seccomp_notif call{};
            if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) < 0) {
                // Who asked has died meanwhile.
                if (errno == EINTR || errno == ENOENT) continue;
                return;
            }
            seccomp_notif_resp reply{};
            reply.id = call.id;
            answer(call, reply);
            (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &reply);
        }
    }

  private:
    void answer(const seccomp_notif& call, seccomp_notif_resp& reply) const {
        auto caller = Caller::of(static_cast<pid_t>(call.pid));
        if (!caller) {
            reply.error = -static_cast<int>(caller.error());
            return;
        }
        if (call.data.nr == SYS_openat2) {
            // Nobody inside can change the agent's memory between its look and the kernel's; all
            // others are told what older kernels say, and use openat.
            if (caller->process() == ::getpid())
                reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
            else
                reply.error = -ENOSYS;
            return;
        }
        const Outcome<void> done = act(call, *caller);
        if (!done) reply.error = -static_cast<int>(done.error());
    }

    /// What is judged is what is acted on, an open file: nobody can put another in its place.
    Outcome<void> act(const seccomp_notif& call, Caller& caller) const {
        Caller::Rights rights(caller.credentials());
        if (!rights.taken()) return Errno{EPERM};
        if (auto seen = caller.look(); !seen) return seen.error();
        // The number may be another's by now.
        if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &call.id) < 0) {
            return Errno{ESRCH};
        }
        auto wanted = read(call.data, caller);
        if (!wanted) return wanted.error();
        if (!rights.narrow()) return Errno{EPERM};
        auto file = open(*wanted, caller);
        if (!file) return file.error();
        return wanted->attribute ? set_attribute(*file, *wanted) : set_mode(*file, *wanted);
    }

    /// The arguments of a call.
    struct Wanted {
        int directory = AT_FDCWD;
        std::string path;
        bool path_is_empty = false;  ///< `directory` is the file itself
        bool follow = true;
        mode_t mode = 0;
        bool attribute = false;
        std::string name;
        std::string value;
        int flags = 0;
    };

    static Outcome<Wanted> read(const seccomp_data& call, const Caller& caller) {
        const auto number = [&](int at) { return static_cast<int>(call.args[at]); };
        Wanted out;
        int path_at = kNone;
        switch (call.nr) {
#ifdef SYS_chmod
            case SYS_chmod:
                path_at = 0;
                out.mode = static_cast<mode_t>(call.args[1]);
                break;
#endif
            case SYS_fchmod:
                out.directory = number(0);
                out.mode = static_cast<mode_t>(call.args[1]);
                break;
            case SYS_fchmodat:
            case SYS_fchmodat2: {
                out.directory = number(0);
                path_at = 1;
                out.mode = static_cast<mode_t>(call.args[2]);
                const int flags = call.nr == SYS_fchmodat2 ? number(3) : 0;
                if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) return Errno{EINVAL};
                out.follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
                out.path_is_empty = (flags & AT_EMPTY_PATH) != 0;
                break;
            }
            case SYS_setxattr:
            case SYS_lsetxattr:
                path_at = 0;
                out.follow = call.nr == SYS_setxattr;
                out.attribute = true;
                break;
            case SYS_fsetxattr:
                out.directory = number(0);
                out.attribute = true;
                break;
            default: return Errno{ENOSYS};
        }
        out.mode &= 07777;
        if (path_at != kNone) {
            auto path = caller.read_text(call.args[path_at], PATH_MAX);
            if (!path) return path.error();
            out.path = std::move(*path);
            out.path_is_empty = out.path_is_empty && out.path.empty();
        } else {
            out.path_is_empty = true;
        }
        if (!out.attribute) return out;
        auto name = caller.read_text(call.args[1], XATTR_NAME_MAX + 1);
        if (!name) return Errno{ERANGE};
        if (call.args[3] > XATTR_SIZE_MAX) return Errno{E2BIG};
        auto value = caller.read_bytes(call.args[2], call.args[3]);
        if (!value) return value.error();
        out.name = std::move(*name);
        out.value = std::move(*value);
        out.flags = number(4);
        return out;
    }

    static Outcome<UniqueFd> open(const Wanted& wanted, const Caller& caller) {
        if (!wanted.path_is_empty) {
            return caller.resolve(wanted.directory, wanted.path, wanted.follow);
        }
        if (wanted.directory != AT_FDCWD) return caller.file(wanted.directory);
        return caller.resolve(AT_FDCWD, ".", true);
    }

    [[nodiscard]] bool is_own(const UniqueFd& file) const {
        const auto mount = mount_of(file.get(), "");
        return mount && own_.contains(*mount);
    }

    /// The way to change what is open as O_PATH only.
    static std::string path_of(const UniqueFd& file) {
        return "/proc/self/fd/" + std::to_string(file.get());
    }

    [[nodiscard]] Outcome<void> set_mode(const UniqueFd& file, const Wanted& wanted) const {
        struct stat info{};
        if (::fstat(file.get(), &info) < 0) return Errno{errno};
        // On a directory they lend no rights: they say whose group new files are of.
        const bool harmless = (wanted.mode & kSetIdModes) == 0 || S_ISDIR(info.st_mode);
        if (!harmless && !is_own(file)) return Errno{EPERM};
        if (::chmod(path_of(file).c_str(), wanted.mode) < 0) return Errno{errno};
        return {};
    }

    [[nodiscard]] Outcome<void> set_attribute(const UniqueFd& file, const Wanted& wanted) const {
        if (wanted.name == kCapabilityAttribute && !is_own(file)) return Errno{EPERM};
        if (::setxattr(path_of(file).c_str(), wanted.name.c_str(), wanted.value.data(),
                       wanted.value.size(), wanted.flags) < 0) {
            return Errno{errno};
        }
        return {};
    }

    static constexpr int kNone = -1;

    UniqueFd listener_;
    std::set<MountId> own_;
};

/// Where nobody can supervise: no file anywhere gets such rights.
Status refuse_everywhere() {
    if (auto s = check(::prctl(PR_CAPBSET_DROP, CAP_SETFCAP), "drop from the bounding set"); !s) {
        return s;
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    if (::syscall(SYS_capget, &header, sets) < 0) return last_error("capget");
    for (std::uint32_t* set : {&sets[0].effective, &sets[0].permitted, &sets[0].inheritable})
        *set &= ~(1U << CAP_SETFCAP);
    if (auto s = check(::syscall(SYS_capset, &header, sets), "capset"); !s) return s;
    return refuse_set_id();
}

}  // namespace

Status keep_set_id_off_volumes(const std::vector<VolumeMount>& volumes) {
    if (std::ranges::none_of(volumes, &VolumeMount::reachable)) return {};
    auto own = own_mounts(volumes);
    if (!own) {
        return own.error().code() == ErrorCode::unsupported ? refuse_everywhere()
                                                            : Status(own.error());
    }
    // The supervisor's thread comes first: it is not held by the filter itself.
    std::promise<UniqueFd> filtered;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread([own = std::move(*own), listener = filtered.get_future()]() mutable {
        UniqueFd given = listener.get();
        if (given) Supervisor(std::move(given), std::move(own)).run();
    });
    thread.detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    auto listener = supervise_set_id();
    if (!listener) {
        filtered.set_value(UniqueFd());
        if (listener.error().code() != ErrorCode::unsupported) return listener.error();
        return refuse_everywhere();
    }
    filtered.set_value(std::move(*listener));
    return {};
}

}  // namespace opensandbox::runtime::native
