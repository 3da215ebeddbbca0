#pragma once

#include "model/json_text.hpp"
#include "runtime/egress_sidecar.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace opensandbox::runtime::docker {

/// The sections [docker], [runtime], [egress], [secure_runtime] and [storage] of the configuration
/// (lifecycle 7), and what the server knows about itself.
struct DockerOptions {
    std::filesystem::path state_directory;
    std::filesystem::path executable = "/proc/self/exe";  ///< the agent that is staged

    // [runtime]
    std::string execd_image;         ///< agent from this image instead of our own; empty: ours
    bool execd_run_as_init = false;  ///< sets EXECD_INIT; our agent is always init

    // [docker]
    std::string network_mode = "bridge";  ///< host, bridge, or a network that exists
    std::chrono::milliseconds api_timeout{180'000};
    std::string
        host_ip;  ///< where ports of the host are found when this server runs in a container
    std::vector<std::string> drop_capabilities{"AUDIT_WRITE", "MKNOD",     "NET_ADMIN",
                                               "NET_RAW",     "SYS_ADMIN", "SYS_MODULE",
                                               "SYS_PTRACE",  "SYS_TIME",  "SYS_TTY_CONFIG"};
    bool no_new_privileges = true;
    std::string apparmor_profile;
    std::string seccomp_profile;
    std::int64_t pids_limit = 4096;
    std::uint16_t port_range_min = 40000;  ///< 1024 or more, the span 100 or more
    std::uint16_t port_range_max = 60000;
    std::string publish_host = "0.0.0.0";  ///< IPv4
    model::StringMap sandbox_env;
    std::vector<std::string> sandbox_binds;

    // [proxy]
    bool resolve_internal = true;  ///< tell the container's own address

    // [storage]
    std::vector<std::string> allowed_host_paths;
    std::string ossfs_mount_root = "/mnt/ossfs";

    EgressSidecarOptions egress;  ///< [egress]

    // [secure_runtime]
    std::string secure_runtime;  ///< type: empty, gvisor, kata
    std::string oci_runtime;     ///< the engine's name of it: runsc, kata-runtime
};

}  // namespace opensandbox::runtime::docker
