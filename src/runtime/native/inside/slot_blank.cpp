#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/inside/slot_process.hpp"
#include "runtime/native/network/link_addresses.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <unistd.h>

/// What a slot does while nobody waits for it. All paths are relative to its new root, a small
/// tmpfs, until that becomes "/".
namespace opensandbox::runtime::native {

namespace {

/// Of every network namespace.
constexpr int kLoopback = 1;

/// The host counts all pseudo terminals together.
constexpr unsigned kMostTerminals = 256;

Status make_mount(const char* source, const char* target, const char* type, unsigned long flags,
                  const char* data) {
    return check(::mount(source, target, type, flags, data), std::string("mount ") + target);
}

Status make_file(const char* path, std::string_view text) {
    UniqueFd fd(::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) return last_error(std::string("create ") + path);
    return check(::write(fd.get(), text.data(), text.size()), std::string("write ") + path);
}

Status leave_groups() {
    if (::setgroups(0, nullptr) < 0) return last_error("setgroups");
    // Now that every hierarchy has its place for this process, none shows above it.
    return check(::unshare(CLONE_NEWCGROUP), "unshare cgroup");
}

/// The new root covers some directory of the host's in this mount namespace alone. It must be one
/// that everybody may enter: to its files root in here is a stranger.
Status enter_skeleton(const char* size) {
    if (auto s = make_mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr); !s) return s;
    Status mounted;
    for (const char* path : {"/tmp", "/mnt", "/run", "/var"}) {
        mounted = make_mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, size);
        if (!mounted) continue;
        if (auto s = check(::chdir(path), std::string("chdir ") + path); !s) return s;
        break;
    }
    if (!mounted) return mounted;
    for (const char* name : {"proc", "sys", "dev", "new", "files", "empty"}) {
        if (auto s = check(::mkdir(name, 0755), std::string("mkdir ") + name); !s) return s;
    }
    return {};
}

Status mount_kernel_file_systems() {
    constexpr unsigned long kQuiet = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (auto s = make_mount("proc", "proc", "proc", kQuiet, nullptr); !s) return s;
    if (auto s = make_mount("sysfs", "sys", "sysfs", kQuiet | MS_RDONLY, nullptr); !s) return s;
    if (auto s = make_mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC,
                            "mode=755,size=64k,nr_inodes=64");
        !s) {
        return s;
    }
    for (const char* name : {"dev/pts", "dev/shm", "dev/mqueue"}) {
        if (auto s = check(::mkdir(name, 0755), std::string("mkdir ") + name); !s) return s;
    }
    if (auto s = make_mount(
            "devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
            ("newinstance,ptmxmode=0666,mode=0620,gid=5,max=" + std::to_string(kMostTerminals))
                .c_str());
        !s) {
        return s;
    }
    if (auto s = make_mount("mqueue", "dev/mqueue", "mqueue", kQuiet, nullptr); !s) return s;
    return make_mount("shm", "dev/shm", "tmpfs", kQuiet, "mode=1777,size=64m");
}

Status make_devices() {
    for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
        const std::string target = std::string("dev/") + name;
        const std::string source = std::string("/dev/") + name;
        if (auto s = make_file(target.c_str(), ""); !s) return s;
        if (auto s = make_mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr); !s) {
            return s;
        }
    }
    constexpr std::array<std::pair<const char*, const char*>, 5> kLinks{
        {{"/proc/self/fd", "dev/fd"},
         {"/proc/self/fd/0", "dev/stdin"},
         {"/proc/self/fd/1", "dev/stdout"},
         {"/proc/self/fd/2", "dev/stderr"},
         {"pts/ptmx", "dev/ptmx"}}};
    for (const auto& [to, from] : kLinks) {
        if (auto s = check(::symlink(to, from), std::string("symlink ") + from); !s) return s;
    }
    return {};
}

Status configure_network(const SlotTerms& terms) {
    auto routes = net::RouteSocket::open();
    if (!routes) return routes.error();
    net::RouteChanges changes;
    changes.set_up(kLoopback);
    // The sandbox's own settings: these files answer for the namespace of whoever opens them.
    // Hosts without IPv6 lack the first.
    (void)write_file("proc/sys/net/ipv6/conf/eth0/accept_ra", "0");
    (void)write_file("proc/sys/net/ipv4/ping_group_range", "0 65535");
    (void)write_file("proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    if (terms.address.empty()) return routes->apply(changes);
    auto link = routes->link_index("eth0");
    if (!link) return link.error();
    if (terms.ipv6_links) changes.without_own_addresses(*link);
    changes.set_up(*link);
    for (const auto& [own, through] :
         {std::pair{&terms.address, &terms.gateway}, std::pair{&terms.address6, &terms.gateway6}}) {
        if (own->empty()) continue;
        boost::system::error_code failed;
        const net::IpAddress address = boost::asio::ip::make_address(*own, failed);
        if (failed) return Error(ErrorCode::protocol, "address: " + failed.message());
        const net::IpAddress gateway = boost::asio::ip::make_address(*through, failed);
        if (failed) return Error(ErrorCode::protocol, "gateway: " + failed.message());
        const unsigned whole = address.is_v6() ? 128 : 32;
        changes.add_address(*link, address, whole)
            .add_neighbour(*link, gateway, kHostMac)
            .add_route({.destination = gateway, .prefix = whole, .link = *link})
            .add_default_route(*link, gateway);
    }
    return routes->apply(changes);
}

/// Covers what says something about the host or acts on it.
Status mask_paths() {
    // A nested user namespace would hand out capabilities again; this also stops clone and clone3.
    if (auto s = write_file("proc/sys/user/max_user_namespaces", "0"); !s) return s;
    if (auto s = make_mount("tmpfs", "empty", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=0");
        !s) {
        return s;
    }
    const auto tolerate = [](int result, const char* path) -> Status {
        // Kernels differ in which of these they have.
        if (result < 0 && errno != ENOENT && errno != ENOTDIR) {
            return last_error(std::string("mask ") + path);
        }
        return {};
    };
    for (const char* path : {"proc/kcore",         "proc/keys",
                             "proc/key-users",     "proc/timer_list",
                             "proc/timer_stats",   "proc/latency_stats",
                             "proc/sched_debug",   "proc/kmsg",
                             "proc/sysrq-trigger", "proc/kallsyms",
                             "proc/kpagecount",    "proc/kpageflags",
                             "proc/kpagecgroup",   "proc/config.gz",
                             "proc/cmdline",       "proc/modules",
                             "proc/interrupts",    "proc/softirqs",
                             "proc/diskstats",     "proc/zoneinfo",
                             "proc/buddyinfo",     "proc/vmallocinfo",
                             "proc/slabinfo",      "proc/pagetypeinfo",
                             "proc/schedstat",     "sys/kernel/vmcoreinfo",
                             "sys/kernel/notes"}) {
        if (auto s = tolerate(::mount("dev/null", path, nullptr, MS_BIND, nullptr), path); !s) {
            return s;
        }
    }
    for (const char* path :
         {"proc/acpi", "proc/asound", "proc/scsi", "sys/firmware", "sys/devices/virtual/powercap",
          "sys/module", "sys/kernel/debug", "sys/kernel/slab"}) {
        if (auto s = tolerate(::mount("empty", path, nullptr, MS_BIND, nullptr), path); !s) {
            return s;
        }
    }
    for (const char* path : {"proc/bus", "proc/fs", "proc/irq", "proc/sys"}) {
        const int bound = ::mount(path, path, nullptr, MS_BIND | MS_REC, nullptr);
        if (bound < 0 && errno == ENOENT) continue;
        constexpr unsigned long kReadOnly =
            MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
        if (bound < 0 || ::mount("", path, nullptr, kReadOnly, nullptr) < 0) {
            return last_error(std::string("make read-only ") + path);
        }
    }
    return {};
}

Status leave_host_tree() {
    if (auto s = check(::syscall(SYS_pivot_root, ".", "."), "pivot_root"); !s) return s;
    if (auto s = check(::umount2(".", MNT_DETACH), "detach the host's tree"); !s) return s;
    return check(::chdir("/"), "chdir /");
}

}  // namespace

Status become_blank(const SlotTerms& terms) {
    if (auto s = leave_groups(); !s) return s.error().within("groups");
    // runsc keeps its state and its words here.
    const char* size =
        terms.gvisor ? "mode=755,size=16m,nr_inodes=1024" : "mode=755,size=1m,nr_inodes=64";
    if (auto s = enter_skeleton(size); !s) return s.error().within("skeleton");
    if (auto s = mount_kernel_file_systems(); !s) return s.error().within("kernel file systems");
    if (auto s = make_devices(); !s) return s.error().within("devices");
    if (auto s = configure_network(terms); !s) return s.error().within("network");
    // Under gVisor nobody inside sees these, and runsc needs them whole to have its own.
    if (!terms.gvisor) {
        if (auto s = mask_paths(); !s) return s.error().within("masked paths");
    }
    if (auto s = make_file("files/resolv.conf", terms.resolver); !s) return s;
    if (auto s = leave_host_tree(); !s) return s.error().within("leave the host's tree");
    return {};
}

}  // namespace opensandbox::runtime::native
