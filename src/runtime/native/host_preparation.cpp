#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "base/scope_exit.hpp"
#include "runtime/native/firewall.hpp"
#include "runtime/native/host.hpp"
#include "runtime/native/id_map.hpp"
#include "runtime/native/kernel.hpp"
#include "runtime/native/overlay.hpp"
#include "runtime/native/seccomp_filter.hpp"

#include <arpa/inet.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <sched.h>
#include <sstream>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

namespace {

/// FNV-1a of the path, folded to 24 bits.
std::string tag_of(const fs::path& directory) {
    std::uint32_t hash = 2166136261U;
    for (const char c : directory.string()) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    char text[7];
    std::snprintf(text, sizeof text, "%06x", (hash ^ (hash >> 24)) & 0xff'ffffU);
    return text;
}

Status make_directory(const fs::path& path) {
    if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + path.string());
    }
    return {};
}

/// Nameservers that a sandbox can reach: all of the host's but those on loopback.
std::string resolver_text() {
    std::string out;
    bool loopback = false;
    for (const char* path : {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}) {
        std::istringstream in(read_file_or_empty(path));
        for (std::string line; std::getline(in, line);) {
            std::istringstream words(line);
            std::string key;
            std::string value;
            words >> key >> value;
            if (key == "search" || key == "options") {
                out += line + "\n";
            } else if (key == "nameserver") {
                // Sandboxes speak IPv4 to the outside.
                in_addr parsed{};
                if (::inet_pton(AF_INET, value.c_str(), &parsed) != 1) continue;
                if (value.starts_with("127."))
                    loopback = true;
                else
                    out += "nameserver " + value + "\n";
            }
        }
        if (!loopback || out.find("nameserver ") != std::string::npos) break;
        out.clear();
    }
    if (out.find("nameserver ") == std::string::npos) {
        log::warn("no resolver of this host is reachable from sandboxes: names will not resolve");
    }
    return out;
}

Status prepare_network(const Host& host) {
    auto routes = net::RouteSocket::open();
    if (!routes) return routes.error();
    auto loopback = routes->link_index("lo");
    if (!loopback) return loopback.error();
    if (auto s = routes->add_address(*loopback, host.gateway(), 32); !s) return s;
    if (auto s = write_file("/proc/sys/net/ipv4/ip_forward", "1"); !s) return s;
    return install_firewall({host.firewall_table(), host.range, host.link_prefix()});
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

/// Routes of sandboxes carry the gateway's address and go with it: while another server has links,
/// perhaps in the same range, it stays. The last one takes it away.
void remove_gateway(const Host& host) {
    auto routes = net::RouteSocket::open();
    if (!routes) return;
    auto links = routes->list_links("osb");
    auto loopback = routes->link_index("lo");
    if (!links || !links->empty() || !loopback) return;
    if (auto s = routes->delete_address(*loopback, host.gateway(), 32); !s) {
        log::warn("the gateway's address stays behind", {{"reason", s.error().message()}});
    }
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
    host.resolver = resolver_text();
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
