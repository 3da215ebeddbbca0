#include "agent/isolated/overlay_mount.hpp"
#include "agent/process/enclosure.hpp"

#include <linux/close_range.h>
#include <linux/mount.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string_view>
#include <unistd.h>

/// Everything here runs in the copy of the agent that becomes the first process of a session. No
/// line of it allocates: another thread may have held the allocator's lock when the copy was made.
namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxAttachments = 128;
constexpr unsigned long kQuiet = MS_NOSUID | MS_NODEV | MS_NOEXEC;
constexpr std::array kDevices{"null", "zero", "full", "random", "urandom", "tty"};

/// A short path of two parts.
std::array<char, 32> joined(std::string_view directory, std::string_view name) {
    std::array<char, 32> path{};
    const std::size_t room = path.size() - 1;
    const std::size_t begun = directory.copy(path.data(), room);
    name.copy(path.data() + begun, room - begun);
    return path;
}

/// One session in the making.
class FirstProcess {
  public:
    FirstProcess(const NamespacePlan& plan, int channel) : plan_(plan), channel_(channel) {
        detached_.fill(-1);
        devices_.fill(-1);
    }

    [[noreturn]] void run() {
        forget_the_agent();
        using Part = bool (FirstProcess::*)();
        constexpr std::array<std::pair<SetupStep, Part>, 10> kParts{
            {{SetupStep::privacy, &FirstProcess::detach_from_sandbox},
             {SetupStep::overlay, &FirstProcess::make_overlays},
             {SetupStep::scratch, &FirstProcess::mount_scratch},
             {SetupStep::uppers, &FirstProcess::cover_uppers},
             {SetupStep::read_only, &FirstProcess::make_read_only},
             {SetupStep::devices, &FirstProcess::mount_devices},
             {SetupStep::proc, &FirstProcess::mount_proc},
             {SetupStep::attach, &FirstProcess::attach_all},
             {SetupStep::network, &FirstProcess::raise_loopback},
             {SetupStep::user, &FirstProcess::enter_user_namespace}}};
        for (const auto& [step, part] : kParts) {
            if (!(this->*part)()) fail(step, errno);
        }
        if (!report_namespaces()) fail(SetupStep::report, errno);
        stay();
    }

  private:
    /// Only what the agent knows may end this process; its handlers and its name are not ours.
    void forget_the_agent() {
        for (int number = 1; number < 32; ++number) {
            struct sigaction normal{};
            normal.sa_handler = SIG_DFL;
            ::sigaction(number, &normal, nullptr);
        }
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::setsid();
        ::prctl(PR_SET_NAME, "isolated");
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::umask(022);
    }

    [[noreturn]] void fail(SetupStep step, int error) {
        SetupReport report;
        report.step = step;
        report.error = error;
        report.index = index_;
        ::send(channel_, &report, sizeof report, MSG_NOSIGNAL);
        ::_exit(1);
    }

    bool detach_from_sandbox() {
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
        // Before /dev is covered.
        for (std::size_t i = 0; i < kDevices.size(); ++i) {
            const auto path = joined("/dev/", kDevices[i]);
            devices_[i] = static_cast<int>(
                ::syscall(SYS_open_tree, AT_FDCWD, path.data(), OPEN_TREE_CLONE | O_CLOEXEC));
        }
        return true;
    }

    bool make_overlays_of(bool in_memory) {
        for (std::size_t i = 0; i < plan_.attachments.size(); ++i) {
            const Attachment& attachment = plan_.attachments[i];
            if (!attachment.overlay || attachment.in_memory != in_memory) continue;
            index_ = static_cast<int>(i);
            detached_[i] = open_overlay(attachment, lowers_[i]);
            if (detached_[i] < 0) return false;
        }
        index_ = -1;
        return true;
    }

    bool make_overlays() {
        if (plan_.attachments.size() > kMaxAttachments) {
            errno = E2BIG;
            return false;
        }
        // All of them, before anything is covered.
        for (std::size_t i = 0; i < plan_.attachments.size(); ++i) {
            const Attachment& attachment = plan_.attachments[i];
            if (!attachment.overlay) continue;
            index_ = static_cast<int>(i);
            lowers_[i] = ::open(attachment.lower.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
            if (lowers_[i] < 0) return false;
        }
        return make_overlays_of(false);
    }

    /// The uppers of others go out of sight; those in memory take their place.
    bool cover_uppers() {
        if (!make_target(plan_.upper_root.c_str(), true)) return false;
        if (::mount("tmpfs", plan_.upper_root.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                    plan_.memory_options.c_str()) != 0) {
            return false;
        }
        return make_overlays_of(true);
    }

    bool make_read_only() {
        constexpr unsigned long kSet = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
        if (!set_mount_attributes(AT_FDCWD, "/", kSet, 0, true)) return false;
        for (const char* own : own_) {
            if (own && !set_mount_attributes(AT_FDCWD, own, 0, MOUNT_ATTR_RDONLY, false)) {
                return false;
            }
        }
        return true;
    }

    /// A private directory that stays writable.
    bool mount_memory(std::size_t number, const char* target, const char* options) {
        if (::mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0) {
            own_[number] = target;
            return true;
        }
        // What the image does not have needs no cover.
        return errno == ENOENT || errno == ENOTDIR;
    }

    bool mount_scratch() {
        if (!mount_memory(0, "/run", "mode=755,size=64m")) return false;
        if (plan_.private_tmp) {
            if (!mount_memory(1, "/tmp", plan_.scratch_options.c_str())) return false;
            if (!mount_memory(2, "/var/tmp", plan_.scratch_options.c_str())) return false;
        }
        if (::mkdir(kStateDirectory, 0700) == 0 &&
            ::chown(kStateDirectory, plan_.uid, plan_.gid) != 0) {
            return false;
        }
        return true;
    }

    bool mount_devices() {
        if (::mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC,
                    "mode=755,size=64k,nr_inodes=64") != 0) {
            return errno == ENOENT;
        }
        for (std::size_t i = 0; i < kDevices.size(); ++i) {
            if (devices_[i] < 0) continue;
            const auto path = joined("/dev/", kDevices[i]);
            if (!attach_mount(devices_[i], path.data(), false)) return false;
        }
        constexpr std::array<std::pair<const char*, const char*>, 5> kLinks{
            {{"/proc/self/fd", "/dev/fd"},
             {"/proc/self/fd/0", "/dev/stdin"},
             {"/proc/self/fd/1", "/dev/stdout"},
             {"/proc/self/fd/2", "/dev/stderr"},
             {"pts/ptmx", "/dev/ptmx"}}};
        for (const auto& [to, from] : kLinks) {
            if (::symlink(to, from) != 0) return false;
        }
        for (const char* directory : {"/dev/pts", "/dev/shm", "/dev/mqueue"}) {
            if (::mkdir(directory, 0755) != 0) return false;
        }
        if (::mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                    "newinstance,ptmxmode=0666,mode=0620,gid=5") != 0 &&
            ::mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                    "newinstance,ptmxmode=0666,mode=0620") != 0) {
            return false;
        }
        if (::mount("shm", "/dev/shm", "tmpfs", kQuiet, "mode=1777,size=64m") != 0) return false;
        // Not every kernel has message queues.
        ::mount("mqueue", "/dev/mqueue", "mqueue", kQuiet, nullptr);
        return set_mount_attributes(AT_FDCWD, "/dev", MOUNT_ATTR_RDONLY, 0, false);
    }

    /// Root without capabilities may still write what belongs to root: the settings of the kernel.
    bool mount_proc() {
        if (::mount("proc", "/proc", "proc", kQuiet, nullptr) != 0) return false;
        for (const char* path :
             {"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list",
              "/proc/sched_debug", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/kallsyms",
              "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/latency_stats"}) {
            if (::mount("/dev/null", path, nullptr, MS_BIND, nullptr) != 0 && errno != ENOENT) {
                return false;
            }
        }
        for (const char* path : {"/proc/acpi", "/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq",
                                 "/proc/scsi", "/proc/sys"}) {
            if (::mount(path, path, nullptr, MS_BIND | MS_REC, nullptr) != 0) {
                if (errno == ENOENT) continue;
                return false;
            }
            if (!set_mount_attributes(AT_FDCWD, path, MOUNT_ATTR_RDONLY, 0, true)) return false;
        }
        return true;
    }

    bool attach_all() {
        for (std::size_t i = 0; i < plan_.attachments.size(); ++i) {
            const Attachment& attachment = plan_.attachments[i];
            index_ = static_cast<int>(i);
            int mount = attachment.overlay ? detached_[i] : attachment.source.get();
            unsigned long set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
            if (attachment.read_only) set |= MOUNT_ATTR_RDONLY;
            if (!set_mount_attributes(mount, "", set, 0, true)) return false;
            if (!attach_mount(mount, attachment.target.c_str(), attachment.directory)) return false;
        }
        index_ = -1;
        return true;
    }

    bool raise_loopback() {
        if (plan_.share_net) return true;
        int control = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (control < 0) return false;
        ifreq request{};
        std::string_view("lo").copy(request.ifr_name, IFNAMSIZ - 1);
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        bool up = ::ioctl(control, SIOCSIFFLAGS, &request) == 0;
        ::close(control);
        return up;
    }

    static bool write_file(const char* path, const char* text) {
        int file = ::open(path, O_WRONLY | O_CLOEXEC);
        if (file < 0) return false;
        auto size = static_cast<ssize_t>(std::strlen(text));
        bool written = ::write(file, text, static_cast<std::size_t>(size)) == size;
        int kept = errno;
        ::close(file);
        errno = kept;
        return written;
    }

    /// Last of all: from inside, none of the mounts made above can be changed any more.
    bool enter_user_namespace() {
        if (!plan_.user_namespace) return true;
        if (::unshare(CLONE_NEWUSER) != 0) return false;
        // The files of a process that cannot be dumped belong to someone else.
        ::prctl(PR_SET_DUMPABLE, 1);
        bool mapped = write_file("/proc/self/setgroups", "deny") &&
                      write_file("/proc/self/uid_map", plan_.uid_map.c_str()) &&
                      write_file("/proc/self/gid_map", plan_.gid_map.c_str());
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        return mapped;
    }

    bool report_namespaces() {
        std::array<int, 6> spaces{};
        std::size_t count = 0;
        for (const char* name : {"mnt", "pid", "ipc", "uts", "net", "user"}) {
            bool own = (std::strcmp(name, "net") != 0 || !plan_.share_net) &&
                       (std::strcmp(name, "user") != 0 || plan_.user_namespace);
            if (!own) continue;
            const auto path = joined("/proc/self/ns/", name);
            spaces[count] = ::open(path.data(), O_RDONLY | O_CLOEXEC);
            if (spaces[count] < 0) return false;
            ++count;
        }
        SetupReport report;
        iovec piece{&report, sizeof report};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof spaces)> control{};
        msghdr message{};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(header), spaces.data(), count * sizeof(int));
        return ::sendmsg(channel_, &message, MSG_NOSIGNAL) > 0;
    }

    /// Orphans are collected by the kernel; the end of the agent closes the channel.
    [[noreturn]] void stay() {
        ::prctl(PR_SET_DUMPABLE, 0);
        ::dup2(channel_, 0);
        ::syscall(SYS_close_range, 1U, ~0U, 0);
        struct sigaction ignored{};
        ignored.sa_handler = SIG_IGN;
        ::sigaction(SIGCHLD, &ignored, nullptr);
        ::chdir("/");
        bound_capabilities(plan_.first);
        if (!put_up_walls(plan_.first)) ::_exit(1);
        // Giving up rights clears it.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        char byte = 0;
        while (true) {
            ssize_t got = ::recv(0, &byte, 1, 0);
            if (got == 0 || (got < 0 && errno != EINTR)) ::_exit(0);
        }
    }

    const NamespacePlan& plan_;
    int channel_;
    int index_ = -1;
    std::array<const char*, 3> own_{};
    std::array<int, kMaxAttachments> lowers_{};
    std::array<int, kMaxAttachments> detached_{};
    std::array<int, kDevices.size()> devices_{};
};

}  // namespace

void run_first_process(const NamespacePlan& plan, int channel) {
    FirstProcess(plan, channel).run();
}

}  // namespace opensandbox::agent
