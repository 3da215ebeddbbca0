#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::docker {

/// The version of the Engine API, such as 1.41.
struct ApiVersion {
    int major = 0;
    int minor = 0;
    friend auto operator<=>(const ApiVersion&, const ApiVersion&) = default;
};

/// What GET /version says.
struct EngineVersion {
    std::string version;         ///< "20.10.24"
    ApiVersion api_version;      ///< the newest that the engine speaks
    ApiVersion min_api_version;  ///< the oldest, 0.0 when it does not say
    std::string os;              ///< "linux"
    std::string architecture;    ///< "amd64"
    std::string kernel;
    bool podman = false;  ///< the engine is Podman's compatible service
};

/// What GET /info says.
struct EngineInfo {
    std::string id;
    std::string name;
    std::string server_version;
    std::string operating_system;
    std::string os_type;       ///< "linux"
    std::string architecture;  ///< as the kernel names it: "x86_64"
    std::string kernel_version;
    std::string cgroup_version;  ///< "1" or "2"
    std::string cgroup_driver;
    std::string storage_driver;
    std::string root_directory;
    std::string default_runtime;
    std::vector<std::string> runtimes;          ///< names, in order
    std::vector<std::string> security_options;  ///< "name=seccomp,profile=default", "name=rootless"
    std::int64_t cpus = 0;
    std::int64_t memory_bytes = 0;

    [[nodiscard]] bool has_runtime(std::string_view wanted) const;
    /// Whether a security option of that name is there: "seccomp", "apparmor", "rootless".
    [[nodiscard]] bool has_security_option(std::string_view wanted) const;
};

}  // namespace opensandbox::runtime::docker
