#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "base/scope_exit.hpp"
#include "runtime/native/firewall.hpp"
#include "runtime/native/host.hpp"
#include "runtime/native/host_network.hpp"
#include "runtime/native/id_map.hpp"
#include "runtime/native/kernel.hpp"
#include "runtime/native/overlay.hpp"
#include "runtime/native/seccomp_filter.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
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

/// Whether an overlay with its writable layer in `directory` and a lower in `lower` takes shifted
/// ids. Builds one and throws it away.
Status try_overlay(const fs::path& directory, const fs::path& lower, bool shift_upper,
                   bool shift_lower) {
    auto userns = make_user_namespace(0x1000'0000);
    if (!userns) return userns.error();
    const fs::path probe = directory / "probe";
    ScopeExit clean([&] { (void)remove_tree(probe); });
    for (const fs::path& path : {probe, probe / "u", probe / "w"}) {
        if (auto s = make_directory(path); !s) return s;
    }
    auto base = clone_tree(probe, shift_upper ? userns->get() : -1);
    if (!base) return base.error();
    OverlaySpec spec;
    const std::string lower_text = lower.string();
    spec.lowers = {&lower_text, 1};
    spec.user_namespace = userns->get();
    spec.shift_lowers = shift_lower;
    spec.base = base->get();
    spec.id_base = shift_upper ? 0x1000'0000 : 0;
    auto overlay = build_overlay(spec);
    return overlay ? Status() : overlay.error();
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

/// Finds out whether ids can be shifted here, and arranges what can be arranged.
Status probe_file_systems(Host& host) {
    const fs::path sandboxes = host.options.sandboxes_directory();
    const fs::path images = host.options.state_directory;
    auto status = try_overlay(sandboxes, sandboxes, true, true);
    // What a full disk can carry cannot be found out, and layers that are there must not be hidden.
    if (!status && status.error().code() == ErrorCode::resource_exhausted) return status;
    if (!status) {
        log::warn("the state directory cannot carry writable layers: they are kept in memory",
                  {{"path", sandboxes.string()}, {"reason", status.error().message()}});
        if (auto s = layers_in_memory(sandboxes); !s) return s;
    }
    if (auto s = try_overlay(sandboxes, images, true, true); !s) {
        log::warn(
            "images lie on a file system that cannot shift ids: sandboxes share the host's "
            "id range and are kept apart by namespaces alone",
            {{"path", images.string()}, {"reason", s.error().message()}});
        host.shift_ids = false;
        host.shift_usr = false;
        return try_overlay(sandboxes, images, false, false);
    }
    if (auto s = try_overlay(sandboxes, "/usr", true, true); !s) {
        log::warn(
            "/usr lies on a file system that cannot shift ids: its files show as nobody's in "
            "sandboxes of the image host",
            {{"reason", s.error().message()}});
        host.shift_usr = false;
    }
    return {};
}

}  // namespace

Result<Host> prepare_host(const SpawnerOptions& options) {
    auto range = net::Ipv4Range::parse(options.address_range);
    if (!range) return range.error();
    Host host(options, *range);
    host.tag = tag_of(options.state_directory);
    if (auto s = make_directory(options.sandboxes_directory()); !s) return s.error();
    if (auto s = keep_capabilities_over_id_changes(); !s) return s.error();
    auto cgroups = CgroupTree::prepare(host.cgroup_group());
    if (!cgroups) return cgroups.error().within("cgroups");
    host.cgroups = std::move(*cgroups);
    for (const char* controller : {"cpu", "memory", "pids"}) {
        if (!host.cgroups.limits(controller)) {
            log::warn("this host cannot limit what sandboxes use", {{"resource", controller}});
        }
    }
    if (auto s = prepare_network(host); !s) return s.error().within("network");
    if (auto s = probe_file_systems(host); !s) return s.error().within("file systems");
    auto filter = compile_seccomp_filter();
    if (!filter) return filter.error();
    host.filter = std::move(*filter);
    return host;
}

void unprepare_host(const Host& host) {
    if (auto s = remove_firewall(host.firewall_table()); !s) {
        log::warn("firewall stays behind", {{"reason", s.error().message()}});
    }
    remove_gateway(host);
    host.cgroups.remove();
}

}  // namespace opensandbox::runtime::native
