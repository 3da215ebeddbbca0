#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::doctor {

/// The file system that a state directory lies on, or would lie on.
struct StateFacts {
    std::filesystem::path path;    ///< as asked for
    std::filesystem::path probed;  ///< the nearest directory that exists
    bool writable = false;
    std::string type;  ///< "ext4", "overlay", …
    bool reflink = false;
    bool quota = false;  ///< mounted with quotas of projects, users or groups
    std::uint64_t free_bytes = 0;
    std::uint64_t total_bytes = 0;
    std::string overlay_problem;  ///< why no overlay can be built there; empty: it can
    std::string shift_problem;    ///< why ids cannot be shifted there; empty: they can
};

/// What cgroups this process could use.
struct CgroupFacts {
    bool v1 = false;
    bool v2 = false;
    std::vector<std::string> controllers;  ///< of cpu, memory, pids, io: usable by this user
    bool freezer = false;
};

struct NetworkFacts {
    std::string firewall_problem;   ///< why our rules cannot be loaded; empty: they can
    bool forwarding = false;        ///< net.ipv4.ip_forward
    bool forwarding_fixed = false;  ///< that cannot be changed from here
    bool forward_dropped = false;   ///< another firewall forbids forwarding, as Docker's does
    bool ipv6 = false;
    bool forwarding6 = false;  ///< net.ipv6.conf.all.forwarding
    bool way_out6 = false;     ///< a default route for IPv6
};

/// What was found on this host, nothing concluded. Every member is a small probe of its own.
struct HostFacts {
    bool root = false;
    std::string user;
    std::string kernel;  ///< "6.18.4"
    std::vector<std::string> missing_namespaces;
    std::optional<std::uint64_t> max_user_namespaces;
    std::string user_namespace_problem;  ///< empty: one was made
    std::uint64_t subordinate_uids = 0;  ///< in the largest range of this user
    std::uint64_t subordinate_gids = 0;
    bool id_map_tools = false;  ///< newuidmap and newgidmap
    CgroupFacts cgroups;
    NetworkFacts network;
    bool seccomp = false;
    int landlock = 0;  ///< version of its interface; 0: none
    bool fuse = false;
    bool tun = false;
    bool docker_socket = false;
    bool podman_socket = false;
    std::string runsc;          ///< path, or empty
    std::string runsc_problem;  ///< why sandboxes cannot be run with it; empty: they can
    std::vector<std::string> bucket_tools;  ///< paths of ossfs and ossfs2
    std::string user_network;               ///< path of pasta, or empty
    std::string user_network_problem;       ///< why it cannot be used; empty: it can
    std::uint64_t open_files = 0;           ///< hard limit
    StateFacts state;
};

}  // namespace opensandbox::doctor
