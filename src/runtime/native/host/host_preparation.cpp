#include "runtime/native/host/host_preparation.hpp"

#include "base/log.hpp"
#include "egress/rules/host_table.hpp"
#include "runtime/native/ground/confinement/seccomp_filter.hpp"
#include "runtime/native/ground/kernel/id_map.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/own_program.hpp"
#include "runtime/native/ground/kernel/visible_proc.hpp"
#include "runtime/native/ground/layer/overlay.hpp"
#include "runtime/native/ground/layer/overlay_probe.hpp"
#include "runtime/native/host/gvisor_program.hpp"
#include "runtime/native/host/host.hpp"
#include "runtime/native/network/firewall.hpp"
#include "runtime/native/network/gateway_addresses.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

namespace {

Status make_directory(const fs::path& path) {
    if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + path.string());
    }
    return {};
}

/// Puts writable layers into memory: for state directories on file systems that cannot carry them,
/// such as the overlay root of a container. Seen by this process and its children only.
Status layers_in_memory(const fs::path& directory) {
    if (auto s = check(::unshare(CLONE_NEWNS), "unshare mounts"); !s) return s;
    if (auto s = check(::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr), "mount / slave");
        !s) {
        return s;
    }
    return check(::mount("tmpfs", directory.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=700"),
                 "mount tmpfs on " + directory.string());
}

/// Overlays as an ordinary user can have them: ids cannot be shifted, so that all slots share those
/// of this user's namespace.
Status probe_as_ordinary_user(Host& host) {
    constexpr OverlayKind kInd{false, false, true};
    const fs::path sandboxes = host.options.sandboxes_directory();
    host.shift_ids = false;
    host.shift_usr = false;
    host.ids = ids_of_this_namespace();
    host.off.emplace_back("an id range of each sandbox's own");
    if (auto s = try_overlay(sandboxes, sandboxes, kInd); !s) {
        if (s.error().code() == ErrorCode::resource_exhausted) return s;
        host.off.emplace_back("writable layers on disk (" + s.error().message() + ")");
        if (auto memory = layers_in_memory(sandboxes); !memory) return memory;
    }
    if (auto s = try_overlay(sandboxes, host.options.state_directory, kInd); !s) return s;
    if (auto s = try_overlay(sandboxes, "/usr", kInd); !s) return s.error().within("/usr");
    host.off.emplace_back("changes to the files in /usr of the image host");
    return {};
}

/// Finds out whether ids can be shifted here, and arranges what can be arranged.
Status probe_file_systems(Host& host) {
    const fs::path sandboxes = host.options.sandboxes_directory();
    const fs::path images = host.options.state_directory;
    auto status = try_overlay(sandboxes, sandboxes, {});
    // What a full disk can carry cannot be found out, and layers that are there must not be hidden.
    if (!status && status.error().code() == ErrorCode::resource_exhausted) return status;
    if (!status) {
        host.off.emplace_back("writable layers on disk (" + status.error().message() + ")");
        if (auto s = layers_in_memory(sandboxes); !s) return s;
    }
    if (auto s = try_overlay(sandboxes, images, {}); !s) {
        host.off.emplace_back("an id range of each sandbox's own (" + s.error().message() + ")");
        host.shift_ids = false;
        host.shift_usr = false;
        return try_overlay(sandboxes, images, {false, false});
    }
    if (auto s = try_overlay(sandboxes, "/usr", {}); !s) {
        host.off.emplace_back("changes to the files in /usr of the image host (" +
                              s.error().message() + ")");
        host.shift_usr = false;
    }
    return {};
}

/// Leaves room for others in what the kernel counts for all.
Status share_kernel(const Host& host) {
    if (host.options.rootless) return share_limits_of_user();
    raise_limits_of_host();
    const std::uint64_t processes = share_of_processes();
    return processes == 0 ? Status() : host.cgroups.limit_processes(processes);
}

/// An ordinary user's server goes on without a network where it cannot have one.
Status connect_sandboxes(Host& host) {
    if (!host.options.rootless) return prepare_network(host);
    auto uplink = Uplink::enter(host.options);
    Status ready;
    if (!uplink) {
        ready = uplink.error();
    } else {
        host.uplink = std::move(*uplink);
        ready = prepare_network(host);
    }
    host.linked = static_cast<bool>(ready);
    if (!ready) {
        host.range6.reset();
        host.off.push_back("a network beyond loopback (" + ready.error().message() + ")");
    }
    return {};
}

/// ext4 does not give out the numbers of files that went in the last minute; where sandboxes come
/// and go, it looks through thousands of those for every new file. Slots that lie apart do not meet
/// each other's. Other file systems ignore it.
void spread_slots(const fs::path& sandboxes) {
    const UniqueFd fd(::open(sandboxes.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int flags = 0;
    if (!fd || ::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) < 0) return;
    flags |= FS_TOPDIR_FL;
    (void)::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags);
}

}  // namespace

Result<Host> prepare_host(const SpawnerOptions& options) {
    auto range = net::Ipv4Range::parse(options.address_range);
    if (!range) return range.error();
    Host host(options, *range);
    host.tag = tag_of(options.state_directory);
    if (options.rootless && options.layer_bytes > 0) {
        return Error(ErrorCode::unsupported,
                     "native.writable_layer: only root's server can limit writable layers");
    }
    if (host.gvisor()) {
        if (auto s = check_gvisor(options.runsc); !s) {
            return s.error().within("secure_runtime.runsc");
        }
        if (auto s = keep_agent(options.own_directory()); !s) return s.error();
    }
    // Every worker needs it.
    if (auto program = open_own_program(); !program) return program.error();
    if (auto s = make_directory(options.sandboxes_directory()); !s) return s.error();
    spread_slots(options.sandboxes_directory());
    if (auto s = keep_capabilities_over_id_changes(); !s) return s.error();
    if (auto s = ensure_visible_proc(options.own_directory() / "proc"); !s) {
        return s.error().within("namespaces");
    }
    auto cgroups = CgroupTree::prepare(host.cgroup_group(), options.rootless);
    if (!cgroups) return cgroups.error().within("cgroups");
    host.cgroups = std::move(*cgroups);
    if (auto s = share_kernel(host); !s) return s.error().within("limits of the kernel");
    for (const char* controller : {"cpu", "memory", "pids"}) {
        if (!host.cgroups.limits(controller)) {
            host.off.emplace_back(std::string("limits of ") + controller);
        }
    }
    if (auto s = connect_sandboxes(host); !s) return s.error().within("network");
    auto probed = options.rootless ? probe_as_ordinary_user(host) : probe_file_systems(host);
    if (!probed) return probed.error().within("file systems");
    host.filter = compile_seccomp_filter();
    return host;
}

void unprepare_host(Host& host) {
    if (host.network()) {
        if (auto s = remove_firewall(host.firewall_table()); !s) {
            log::warn("firewall stays behind", {{"reason", s.error().message()}});
        }
        if (auto s = egress::rules::HostTable::remove(host.egress_table()); !s) {
            log::warn("egress control's table stays behind", {{"reason", s.error().message()}});
        }
        remove_gateways(host.gateways());
    }
    host.uplink.end();
    host.cgroups.remove();
}

}  // namespace opensandbox::runtime::native
