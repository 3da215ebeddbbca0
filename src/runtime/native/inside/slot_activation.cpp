#include "net/route_socket.hpp"
#include "runtime/native/ground/confinement/capabilities.hpp"
#include "runtime/native/ground/confinement/seccomp_filter.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/inside/set_id_supervisor.hpp"
#include "runtime/native/inside/slot_process.hpp"
#include "runtime/native/inside/user_lookup.hpp"
#include "runtime/native/inside/volume_mount.hpp"

#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

/// What a blank does when a sandbox is asked for: the only part on the request path, so it makes
/// as few calls as it can.
namespace opensandbox::runtime::native {

namespace {

/// Opens a path of the image as if the image were "/": links in it lead nowhere else.
UniqueFd open_in(int root, const char* path, std::uint64_t flags, std::uint64_t mode = 0) {
    open_how how{};
    how.flags = flags | O_CLOEXEC;
    how.mode = mode;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how)));
}

/// A directory at the top of the image to mount on, made when the image lacks it. A link there is
/// refused: mounting behind it would hide some other part of the image.
Result<UniqueFd> mount_point(int root, const char* name) {
    if (::mkdirat(root, name, 0755) < 0 && errno != EEXIST) {
        return last_error(std::string("mkdir /") + name);
    }
    UniqueFd fd = open_in(root, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!fd) return last_error(std::string("image: /") + name + " is not a directory");
    return fd;
}

Status move_onto(int from_directory, const char* from, int target) {
    const unsigned flags = MOVE_MOUNT_T_EMPTY_PATH | (from[0] == 0 ? MOVE_MOUNT_F_EMPTY_PATH : 0U);
    return check(::move_mount(from_directory, from, target, "", flags), "move_mount");
}

/// A file of the image to mount on, made when the image lacks it.
Result<UniqueFd> file_mount_point(int root, const std::string& path) {
    UniqueFd fd = open_in(root, path.c_str(), O_PATH);
    if (fd || errno != ENOENT) {
        if (!fd) return last_error("image: " + path);
        return fd;
    }
    ::mkdirat(root, "etc", 0755);
    UniqueFd made = open_in(root, path.c_str(), O_WRONLY | O_CREAT, 0644);
    if (!made) {
        // A link that leads nowhere, such as one to a resolver's run-time file.
        UniqueFd etc = open_in(root, "etc", O_PATH | O_DIRECTORY);
        const std::string name = path.substr(path.rfind('/') + 1);
        if (etc) ::unlinkat(etc.get(), name.c_str(), 0);
        made = open_in(root, path.c_str(), O_WRONLY | O_CREAT, 0644);
    }
    if (!made) return last_error("create " + path);
    return open_in(root, path.c_str(), O_PATH);
}

Status write_new(const char* path, std::string_view text) {
    UniqueFd fd(::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) return last_error(std::string("create ") + path);
    return check(::write(fd.get(), text.data(), text.size()), std::string("write ") + path);
}

std::string hosts_text(const SlotTerms& terms, const std::string& hostname) {
    std::string out = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
                      (terms.address.empty() ? "127.0.1.1" : terms.address) + "\t" + hostname +
                      "\n";
    if (!terms.address6.empty()) out += terms.address6 + "\t" + hostname + "\n";
    return out;
}

/// hosts, hostname and resolv.conf are mounted from a tmpfs, as container engines do: writing them
/// to the layer would cost more, and they belong to this sandbox, not to its snapshots.
Status place_files(int root, const SlotTerms& terms, const std::string& hostname) {
    if (auto s = write_names(terms, hostname); !s) return s;
    for (const char* name : {"hosts", "hostname", "resolv.conf"}) {
        auto target = file_mount_point(root, std::string("etc/") + name);
        if (!target) return target.error();
        const std::string source = std::string("/files/") + name;
        UniqueFd file(::open_tree(AT_FDCWD, source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
        if (!file) return last_error("open_tree " + source);
        if (auto s = move_onto(file.get(), "", target->get()); !s) return s.error().within(source);
    }
    return check(::sethostname(hostname.data(), hostname.size()), "sethostname");
}

Status take_root(const SlotTerms& terms, const CreateRequest& request, Activation& parts) {
    auto attached_root = attach_root(parts);
    if (!attached_root) return attached_root.error();
    const UniqueFd root = std::move(*attached_root);
    for (const char* name : {"proc", "sys", "dev"}) {
        auto target = mount_point(root.get(), name);
        if (!target) return target.error();
        const std::string source = std::string("/") + name;
        if (auto s = move_onto(AT_FDCWD, source.c_str(), target->get()); !s) {
            return s.error().within(source);
        }
    }
    if (auto s = place_files(root.get(), terms, request.plan.network.hostname); !s) return s;
    for (std::size_t i = 0; i < parts.volumes.size(); ++i) {
        UniqueFd volume = std::move(parts.volumes[i]);
        if (!volume) {
            auto made = make_memory_mount(request.volumes[i]);
            if (!made) return made.error();
            volume = std::move(*made);
        }
        auto attached = attach_volume(root.get(), request.volumes[i], std::move(volume));
        if (!attached) return attached;
    }
    if (auto s = check(::chdir("/new"), "chdir"); !s) return s;
    if (auto s = check(::syscall(SYS_pivot_root, ".", "."), "pivot_root"); !s) return s;
    if (auto s = check(::umount2(".", MNT_DETACH), "detach the blank's tree"); !s) return s;
    return check(::chdir("/"), "chdir /");
}

Status set_resource_limits(std::uint64_t open_files) {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) < 0) return last_error("read the limit of files");
    files.rlim_max = std::min<rlim_t>(files.rlim_max, 1'048'576);
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 65'536);
    if (open_files > 0) files.rlim_cur = files.rlim_max = std::min(files.rlim_max, open_files);
    return check(::setrlimit(RLIMIT_NOFILE, &files), "limit open files");
}

/// Where no cgroup counts a sandbox as a whole, the kernel at least counts each process's memory
/// and each user's processes: both tell of their limits in the manual of setrlimit.
Status stand_in_for_cgroups(const SlotTerms& terms, const ResourceLimits& limits) {
    if (terms.memory_by_process && limits.memory_bytes > 0) {
        const rlimit memory{limits.memory_bytes, limits.memory_bytes};
        if (::setrlimit(RLIMIT_DATA, &memory) < 0) return last_error("limit memory");
    }
    if (terms.processes_by_user && limits.pids > 0) {
        const rlimit processes{limits.pids, limits.pids};
        if (::setrlimit(RLIMIT_NPROC, &processes) < 0) return last_error("limit processes");
    }
    return {};
}

/// From here on nothing can be undone.
Status fence_in(std::span<const sock_filter> filter, std::uint64_t open_files) {
    if (auto s = set_resource_limits(open_files); !s) return s;
    if (auto s = check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs"); !s) return s;
    if (auto s = drop_capabilities(sandbox_capabilities()); !s) return s.error();
    if (auto s = install_seccomp_filter(filter); !s) return s;
    // The agent's memory holds its token: nobody inside may look.
    return check(::prctl(PR_SET_DUMPABLE, 0), "prctl dumpable");
}

void set_default(Environment& environment, std::string_view name, std::string value) {
    const bool present = std::ranges::any_of(
        environment, [&](const auto& variable) { return variable.first == name; });
    if (!present) environment.emplace_back(name, std::move(value));
}

}  // namespace

Result<UniqueFd> attach_root(const Activation& parts) {
    if (auto s =
            check(::move_mount(parts.root.get(), "", AT_FDCWD, "/new", MOVE_MOUNT_F_EMPTY_PATH),
                  "attach the root");
        !s) {
        return s.error();
    }
    UniqueFd root(::open("/new", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root) return last_error("open the root");
    if (parts.usr) {
        auto target = mount_point(root.get(), "usr");
        if (!target) return target.error();
        if (auto s = move_onto(parts.usr.get(), "", target->get()); !s) {
            return s.error().within("/usr");
        }
    }
    return root;
}

Status write_names(const SlotTerms& terms, const std::string& hostname) {
    if (auto s = write_new("/files/hosts", hosts_text(terms, hostname)); !s) return s;
    return write_new("/files/hostname", hostname + "\n");
}

Status limit_network(const CreateRequest& request) {
    if (!request.plan.network.none && request.plan.limits.network_rate == 0) return {};
    auto routes = net::RouteSocket::open();
    if (!routes) return routes.error();
    auto link = routes->link_index("eth0");
    if (!link) return link.error();
    if (request.plan.network.none) return routes->set_down(*link);
    return routes->limit_rate(*link, request.plan.limits.network_rate);
}

Result<Activated> become_sandbox(const SlotTerms& terms, const CreateRequest& request,
                                 Activation parts) {
    if (auto s = take_root(terms, request, parts); !s) {
        // A volume is named already.
        return s.error().wire().empty() ? s.error().within("root") : s.error();
    }
    parts = {};
    if (!terms.address.empty()) {
        if (auto s = limit_network(request); !s) return s.error().within("network");
    }
    if (auto s = stand_in_for_cgroups(terms, request.plan.limits); !s) {
        return s.error().within("fence in");
    }
    return confine(request, terms.filter);
}

Result<Activated> confine(const CreateRequest& request, std::span<const sock_filter> filter) {
    std::string passwd;
    std::string group;
    if (!request.plan.image.config.user.empty()) {
        passwd = read_file_or_empty("/etc/passwd");
        group = read_file_or_empty("/etc/group");
    }
    auto user = resolve_user(request.plan.image.config.user, passwd, group);
    if (!user) return user.error();
    if (auto s = fence_in(filter, request.plan.limits.open_files); !s)
        return s.error().within("fence in");
    if (auto s = keep_set_id_off_volumes(request.volumes); !s) return s.error().within("volumes");
    Activated result;
    result.uid = user->uid;
    result.gid = user->gid;
    result.home = user->home;
    return result;
}

Environment Activated::environment(const CreateRequest& request) const {
    Environment out = request.plan.environment;
    set_default(out, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    set_default(out, "HOME", home);
    set_default(out, "HOSTNAME", request.plan.network.hostname);
    return out;
}

Status take_names(const SlotTerms& terms, const CreateRequest& request) {
    const std::string hosts = hosts_text(terms, request.plan.network.hostname);
    const std::string name = request.plan.network.hostname + "\n";
    for (const auto& [path, text] :
         {std::pair{"/etc/hosts", &hosts}, std::pair{"/etc/hostname", &name}}) {
        const UniqueFd file(::open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC));
        if (!file) return last_error(std::string("open ") + path);
        if (auto s = check(::write(file.get(), text->data(), text->size()), path); !s) return s;
    }
    return {};
}

}  // namespace opensandbox::runtime::native
