#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"
#include "runtime/docker/engine/image.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::docker {

/// A container port; `host_port` is 0 when it is not published.
struct PublishedPort {
    std::uint16_t container_port = 0;
    std::string protocol;  ///< "tcp", "udp", "sctp"
    std::string host_ip;
    std::uint16_t host_port = 0;
};

/// A container's place in one network.
struct NetworkEndpoint {
    std::string network;  ///< its name
    std::string network_id;
    std::string ip_address;    ///< IPv4 or empty
    std::string ipv6_address;  ///< or empty
    std::string gateway;
};

struct ContainerMount {
    std::string type;  ///< "bind", "volume", "tmpfs"
    std::string name;  ///< of a volume
    std::string source;
    std::string destination;
    bool read_write = true;
};

struct HealthProbe {
    std::optional<Timestamp> start;
    std::optional<Timestamp> end;
    std::int64_t exit_code = 0;
    std::string output;
};

struct ContainerHealth {
    std::string status;  ///< "starting", "healthy", "unhealthy"
    std::int64_t failing_streak = 0;
    std::vector<HealthProbe> log;
};

struct ContainerState {
    std::string status;    ///< created, running, paused, restarting, removing, exited, dead
    bool running = false;  ///< a paused one runs, too
    bool paused = false;
    bool restarting = false;
    bool oom_killed = false;
    bool dead = false;
    std::int64_t pid = 0;
    std::int64_t exit_code = 0;            ///< 128 + n after signal n
    std::string error;                     ///< why the start failed
    std::optional<Timestamp> started_at;   ///< empty: never
    std::optional<Timestamp> finished_at;  ///< empty: never
    std::optional<ContainerHealth> health;
};

/// What GET /containers/{id}/json says.
struct ContainerInfo {
    std::string id;
    std::string name;      ///< without the leading slash
    std::string image;     ///< reference as it was created from
    std::string image_id;  ///< "sha256:…"
    std::string platform;  ///< "linux"
    std::string runtime;   ///< "runc", "runsc"
    std::optional<Timestamp> created_at;
    ContainerState state;

    StringMap labels;
    std::vector<std::string> env;  ///< "NAME=value"
    std::vector<std::string> cmd;
    std::vector<std::string> entrypoint;
    bool tty = false;

    std::string network_mode;
    std::string ip_address;  ///< in the default bridge, or empty
    std::vector<NetworkEndpoint> networks;
    std::vector<PublishedPort> ports;
    std::vector<ContainerMount> mounts;

    std::int64_t nano_cpus = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t pids_limit = 0;

    json::value document;  ///< all of it, as the engine sent it

    /// The first value of that label.
    [[nodiscard]] std::optional<std::string> label(std::string_view key) const;
    /// The host port of a TCP port, 0 when it is not published.
    [[nodiscard]] std::uint16_t host_port(std::uint16_t container_port) const;
};

/// A container of the list, from GET /containers/json.
struct ContainerSummary {
    std::string id;
    std::vector<std::string> names;  ///< without the leading slash
    std::string image;
    std::string image_id;
    std::string state;   ///< "running", "exited"
    std::string status;  ///< "Up 2 minutes"
    std::optional<Timestamp> created_at;
    StringMap labels;
    std::vector<PublishedPort> ports;
    std::string network_mode;
    std::vector<NetworkEndpoint> networks;
    std::vector<ContainerMount> mounts;

    [[nodiscard]] std::optional<std::string> label(std::string_view key) const;
};

/// Which containers a list holds; conditions of one kind that repeat are alternatives for names and
/// states, and must all hold for labels.
struct ContainerFilter {
    bool all = true;                  ///< also those that do not run
    std::vector<std::string> labels;  ///< "key" or "key=value"
    std::vector<std::string> names;   ///< regular expressions, as the engine takes them
    std::vector<std::string> states;  ///< "running", "exited"…
};

struct CreatedContainer {
    std::string id;
    std::vector<std::string> warnings;
};

/// One reading of a container's use of resources, from GET /containers/{id}/stats.
struct ContainerStats {
    std::uint64_t cpu_nanoseconds = 0;         ///< used since the start
    std::uint64_t system_cpu_nanoseconds = 0;  ///< of the whole host
    std::uint64_t online_cpus = 0;
    std::uint64_t memory_bytes = 0;  ///< without file pages that can be dropped
    std::uint64_t memory_limit_bytes = 0;
    std::uint64_t pids = 0;
    std::uint64_t received_bytes = 0;  ///< all networks
    std::uint64_t sent_bytes = 0;
};

}  // namespace opensandbox::runtime::docker
