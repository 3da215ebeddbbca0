#include "doctor/checks.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace opensandbox::doctor {

namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
/// Ids of one sandbox.
constexpr std::uint64_t kIdsOfASandbox = 65'536;

Finding good(std::string name, std::string found, std::string follows = {}) {
    return {std::move(name), Level::good, std::move(found), std::move(follows)};
}

Finding off(std::string name, std::string found, std::string follows) {
    return {std::move(name), Level::off, std::move(found), std::move(follows)};
}

Finding blocking(std::string name, std::string found, std::string follows) {
    return {std::move(name), Level::blocking, std::move(found), std::move(follows)};
}

std::string join(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words)
        out += (out.empty() ? "" : ", ") + word;
    return out;
}

std::string in_gib(std::uint64_t bytes) {
    return std::to_string(bytes / kGib) + "." + std::to_string(bytes % kGib * 10 / kGib) + " GiB";
}

/// Major and minor number of "6.18.4-foo"; zeros when there are none.
std::array<int, 2> version_of(const std::string& release) {
    std::array<int, 2> out{0, 0};
    const char* at = release.data();
    const char* end = at + release.size();
    for (int& part : out) {
        const auto result = std::from_chars(at, end, part);
        if (result.ec != std::errc{}) break;
        at = result.ptr < end ? result.ptr + 1 : end;
    }
    return out;
}

}  // namespace

std::string_view to_string(Level level) {
    switch (level) {
        case Level::good: return "ok";
        case Level::off: return "off";
        case Level::blocking: return "fail";
    }
    return "fail";
}

Finding check_kernel(const HostFacts& facts) {
    constexpr std::array<int, 2> kOldest{6, 13};
    if (version_of(facts.kernel) >= kOldest) return good("kernel", facts.kernel);
    return blocking("kernel", facts.kernel,
                    "Linux 6.13 or newer is needed: overlayfs must take layers as descriptors");
}

Finding check_namespaces(const HostFacts& facts) {
    if (facts.missing_namespaces.empty()) return good("namespaces", "all kinds");
    return blocking("namespaces", "without " + join(facts.missing_namespaces),
                    "a sandbox needs every kind of namespace");
}

Finding check_user_namespaces(const HostFacts& facts) {
    const std::string limit = facts.max_user_namespaces
                                  ? "at most " + std::to_string(*facts.max_user_namespaces)
                                  : "no limit known";
    if (!facts.user_namespace_problem.empty()) {
        return blocking("user namespaces", facts.user_namespace_problem,
                        "every sandbox has one; see user.max_user_namespaces, "
                        "kernel.unprivileged_userns_clone and AppArmor's restriction");
    }
    if (facts.max_user_namespaces && *facts.max_user_namespaces < 256) {
        return off("user namespaces", limit,
                   "no more sandboxes and blanks than that; raise user.max_user_namespaces");
    }
    return good("user namespaces", limit);
}

Finding check_subordinate_ids(const HostFacts& facts) {
    const std::string name = "subordinate ids";
    if (facts.root) return good(name, "not needed by root");
    if (!facts.id_map_tools) {
        return blocking(name, "newuidmap and newgidmap are missing",
                        "an ordinary user needs them to give sandboxes ids: install uidmap");
    }
    const std::uint64_t least = std::min(facts.subordinate_uids, facts.subordinate_gids);
    if (least == 0) {
        return blocking(name, "none for " + facts.user,
                        "add a range of 65536 to /etc/subuid and /etc/subgid "
                        "(usermod --add-subuids 100000-165535 --add-subgids 100000-165535 " +
                            facts.user + ")");
    }
    if (least + 1 < kIdsOfASandbox) {
        return off(name, std::to_string(least) + " for " + facts.user,
                   "files of images that belong to higher ids cannot be unpacked");
    }
    return good(name, std::to_string(least) + " for " + facts.user,
                "all sandboxes of this user share them: namespaces alone keep them apart");
}

Finding check_overlay(const HostFacts& facts) {
    if (facts.state.overlay_problem.empty()) {
        return good("overlayfs", facts.root ? "works" : "works for this user");
    }
    if (facts.root) {
        return off("overlayfs", "not in the state directory: " + facts.state.overlay_problem,
                   "writable layers are kept in memory; put the state directory on a file system "
                   "such as ext4, XFS or btrfs");
    }
    return blocking(
        "overlayfs", facts.state.overlay_problem,
        "every sandbox stands on one; the state directory must be on a file system such "
        "as ext4, XFS or btrfs");
}

Finding check_id_shift(const HostFacts& facts) {
    if (!facts.root) {
        return off(
            "shifted ids", "not for an ordinary user",
            "sandboxes share the ids of " + facts.user +
                ", and root inside is that user outside, without power over anything but its "
                "own namespaces");
    }
    if (facts.state.shift_problem.empty()) return good("shifted ids", "works");
    return off("shifted ids", facts.state.shift_problem,
               "sandboxes share the host's ids and are kept apart by namespaces alone");
}

Finding check_cgroups(const HostFacts& facts) {
    const CgroupFacts& cgroups = facts.cgroups;
    std::string kind = cgroups.v1 && cgroups.v2 ? "v1 and v2" : cgroups.v1 ? "v1" : "v2";
    if (!cgroups.v1 && !cgroups.v2) kind = "none";
    std::vector<std::string> missing;
    for (const char* wanted : {"cpu", "memory", "pids"}) {
        if (std::ranges::find(cgroups.controllers, wanted) == cgroups.controllers.end()) {
            missing.emplace_back(wanted);
        }
    }
    if (missing.empty()) return good("cgroups", kind + ": " + join(cgroups.controllers));
    std::string follows = "limits of " + join(missing) + " are off";
    if (!facts.root) {
        follows +=
            "; memory and processes are limited by rlimits instead, each process by itself. A "
            "delegated cgroup v2 (systemd: Delegate=yes) brings the limits";
    }
    return off("cgroups",
               kind + (cgroups.controllers.empty() ? ", no controller for this user"
                                                   : ": " + join(cgroups.controllers)),
               follows);
}

Finding check_pause(const HostFacts& facts) {
    if (facts.cgroups.freezer) return good("pause", "by the kernel's freezer");
    return good("pause", "by signals: no freezer for this user",
                "programs inside can notice a pause (SIGCONT)");
}

Finding check_firewall(const HostFacts& facts) {
    if (facts.network.firewall_problem.empty()) return good("nftables", "all that is used");
    if (!facts.root) {
        return off("nftables", facts.network.firewall_problem, "sandboxes have no network");
    }
    return blocking("nftables", facts.network.firewall_problem,
                    "sandboxes cannot be kept from the host's network");
}

Finding check_forwarding(const HostFacts& facts) {
    const std::string name = "outbound network";
    if (!facts.root) {
        if (facts.user_network_problem.empty() && facts.network.firewall_problem.empty()) {
            return good(name, "by " + facts.user_network,
                        "connections of sandboxes are made by a process of " + facts.user);
        }
        return off(name,
                   facts.user_network_problem.empty() ? facts.network.firewall_problem
                                                      : facts.user_network_problem,
                   "sandboxes have their loopback only; agents are reached through descriptors");
    }
    if (facts.network.forward_dropped) {
        return off(name, "another firewall forbids forwarding",
                   "sandboxes reach nothing beyond this host until iptables -I FORWARD accepts "
                   "their range (README)");
    }
    if (!facts.network.forwarding && facts.network.forwarding_fixed) {
        return blocking(name, "net.ipv4.ip_forward is off, and /proc/sys is read-only",
                        "serve cannot turn it on: set it on the host, or for the container");
    }
    if (!facts.network.forwarding)
        return good(name, "net.ipv4.ip_forward is off: serve turns it on");
    return good(name, "forwarding is on");
}

Finding check_ipv6(const HostFacts& facts) {
    const std::string name = "IPv6";
    if (!facts.root) {
        const bool outbound = check_forwarding(facts).level == Level::good;
        if (outbound && facts.network.way_out6) return good(name, "by " + facts.user_network);
        return off(name, outbound ? "the host has no default route for it" : "no outbound network",
                   "sandboxes have no IPv6");
    }
    if (!facts.network.ipv6)
        return off(name, "this kernel has none, or it is switched off", "sandboxes have none");
    if (!facts.network.forwarding6) {
        return off(name, "net.ipv6.conf.all.forwarding is 0, and serve leaves it so",
                   "sandboxes have no IPv6");
    }
    return good(name, "forwarding is on");
}

Finding check_seccomp(const HostFacts& facts) {
    if (facts.seccomp) return good("seccomp", "filters");
    return blocking("seccomp", "none", "system calls of sandboxes cannot be filtered");
}

Finding check_landlock(const HostFacts& facts) {
    if (facts.landlock > 0) return good("landlock", "version " + std::to_string(facts.landlock));
    return off("landlock", "none", "isolated sessions lack their second wall around files");
}

Finding check_devices(const HostFacts& facts) {
    std::vector<std::string> missing;
    if (!facts.fuse) missing.emplace_back("/dev/fuse");
    if (!facts.tun) missing.emplace_back("/dev/net/tun");
    if (missing.empty()) return good("devices", "/dev/fuse, /dev/net/tun");
    return off("devices", "cannot open " + join(missing),
               !facts.fuse ? "bucket volumes cannot be mounted" : "user-mode networks cannot run");
}

Finding check_state(const HostFacts& facts) {
    const StateFacts& state = facts.state;
    const std::string where = state.path.string() + " on " + state.type;
    if (!state.writable) {
        return blocking("state directory", state.probed.string() + " cannot be written",
                        "choose another: serve --state-dir");
    }
    if (state.type == "overlay") {
        return off(
            "state directory", where,
            "another overlay cannot lie on it: layers are kept in memory; give a container a "
            "volume for it");
    }
    if (!state.reflink) {
        return off("state directory", where + ", without reflinks",
                   "snapshots copy what a sandbox wrote; on XFS or btrfs they share it");
    }
    return good("state directory", where + ", with reflinks" + (state.quota ? " and quotas" : ""));
}

Finding check_space(const HostFacts& facts) {
    const std::string found =
        in_gib(facts.state.free_bytes) + " of " + in_gib(facts.state.total_bytes) + " free";
    if (facts.state.free_bytes >= kGib) return good("disk", found);
    return off("disk", found, "creates and snapshots fail when it is full");
}

Finding check_open_files(const HostFacts& facts) {
    // Five descriptors a sandbox, and some for the rest.
    const std::string found = "at most " + std::to_string(facts.open_files);
    if (facts.open_files >= 4096) return good("open files", found);
    return off("open files", found,
               "no more than about " +
                   std::to_string(facts.open_files > 100 ? (facts.open_files - 100) / 5 : 0) +
                   " sandboxes at once; raise the limit (ulimit -Hn)");
}

Finding check_engines(const HostFacts& facts) {
    std::vector<std::string> found;
    if (facts.docker_socket) found.emplace_back("Docker");
    if (facts.podman_socket) found.emplace_back("Podman");
    if (found.empty()) return good("engines", "none", "runtime.type = \"docker\" is not possible");
    return good("engines", join(found));
}

Finding check_gvisor(const HostFacts& facts) {
    constexpr const char* kImpossible = "secure_runtime.type = \"gvisor\" is not possible";
    if (facts.runsc.empty()) return good("gVisor", "no runsc", kImpossible);
    if (!facts.runsc_problem.empty()) return off("gVisor", facts.runsc_problem, kImpossible);
    if (!facts.root) {
        return good("gVisor", facts.runsc,
                    "for root's server only: an ordinary user's sandboxes cannot run under it");
    }
    return good("gVisor", facts.runsc,
                "sandboxes run under it with secure_runtime.type = \"gvisor\"");
}

Finding check_buckets(const HostFacts& facts) {
    if (!facts.root) {
        return off("buckets", "not root",
                   "volumes of buckets are not possible: only root can show "
                   "them to sandboxes");
    }
    if (!facts.bucket_tools.empty()) return good("buckets", join(facts.bucket_tools));
    return good("buckets", "no ossfs, no ossfs2", "volumes of buckets are not possible");
}

std::vector<Finding> examine(const HostFacts& facts) {
    constexpr std::array kChecks{check_kernel,          check_namespaces, check_user_namespaces,
                                 check_subordinate_ids, check_overlay,    check_id_shift,
                                 check_cgroups,         check_pause,      check_firewall,
                                 check_forwarding,      check_ipv6,       check_seccomp,
                                 check_landlock,        check_devices,    check_state,
                                 check_space,           check_open_files, check_engines,
                                 check_gvisor,          check_buckets};
    std::vector<Finding> findings;
    findings.reserve(kChecks.size());
    for (const auto& check : kChecks)
        findings.push_back(check(facts));
    return findings;
}

bool native_can_run(const std::vector<Finding>& findings) {
    return std::ranges::none_of(
        findings, [](const Finding& finding) { return finding.level == Level::blocking; });
}

}  // namespace opensandbox::doctor
