#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/document_reader.hpp"

#include <charconv>

namespace opensandbox::runtime::docker {
namespace {

std::string without_slash(std::string name) {
    if (name.starts_with('/')) name.erase(0, 1);
    return name;
}

/// 0 when it is none.
std::uint16_t published_port(std::string_view digits) {
    std::uint16_t port = 0;
    auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    return failure == std::errc() && end == digits.data() + digits.size() ? port : 0;
}

ContainerHealth read_health(DocumentReader& read, const json::object& from) {
    ContainerHealth health;
    health.status = read.text(from, "Status");
    health.failing_streak = read.integer(from, "FailingStreak");
    for (const json::object* item : read.objects(from, "Log")) {
        HealthProbe probe;
        probe.start = read.time(*item, "Start");
        probe.end = read.time(*item, "End");
        probe.exit_code = read.integer(*item, "ExitCode");
        probe.output = read.text(*item, "Output");
        health.log.push_back(std::move(probe));
    }
    return health;
}

ContainerState read_state(DocumentReader& read, const json::object& from) {
    ContainerState state;
    state.status = read.text(from, "Status");
    state.running = read.flag(from, "Running");
    state.paused = read.flag(from, "Paused");
    state.restarting = read.flag(from, "Restarting");
    state.oom_killed = read.flag(from, "OOMKilled");
    state.dead = read.flag(from, "Dead");
    state.pid = read.integer(from, "Pid");
    state.exit_code = read.integer(from, "ExitCode");
    state.error = read.text(from, "Error");
    state.started_at = read.time(from, "StartedAt");
    state.finished_at = read.time(from, "FinishedAt");
    const json::object& health = read.object(from, "Health");
    // Podman sends an empty one where there is no check.
    if (!read.text(health, "Status").empty()) state.health = read_health(read, health);
    // A paused container runs; Podman denies it.
    if (state.paused) state.running = true;
    return state;
}

std::vector<NetworkEndpoint> read_networks(DocumentReader& read, const json::object& from) {
    std::vector<NetworkEndpoint> networks;
    const json::object& all = read.object(from, "Networks");
    for (const auto& [name, ignored] : all) {
        const json::object& item = read.object(all, name);
        NetworkEndpoint endpoint;
        endpoint.network = name;
        endpoint.network_id = read.text(item, "NetworkID");
        endpoint.ip_address = read.text(item, "IPAddress");
        endpoint.ipv6_address = read.text(item, "GlobalIPv6Address");
        endpoint.gateway = read.text(item, "Gateway");
        networks.push_back(std::move(endpoint));
    }
    return networks;
}

/// "80/tcp": [{"HostIp": "", "HostPort": "8080"}], or null where nothing is published.
std::vector<PublishedPort> read_port_map(DocumentReader& read, const json::object& from) {
    std::vector<PublishedPort> ports;
    const json::object& all = read.object(from, "Ports");
    for (const auto& [key, ignored] : all) {
        std::string_view text = key;
        std::size_t slash = text.find('/');
        PublishedPort port;
        port.container_port = published_port(text.substr(0, slash));
        port.protocol = slash == std::string_view::npos ? "tcp" : text.substr(slash + 1);
        auto bindings = read.objects(all, key);
        if (bindings.empty()) ports.push_back(port);
        for (const json::object* binding : bindings) {
            port.host_ip = read.text(*binding, "HostIp");
            port.host_port = published_port(read.text(*binding, "HostPort"));
            ports.push_back(port);
        }
    }
    return ports;
}

std::vector<ContainerMount> read_mounts(DocumentReader& read, const json::object& from) {
    std::vector<ContainerMount> mounts;
    for (const json::object* item : read.objects(from, "Mounts")) {
        ContainerMount mount;
        mount.type = read.text(*item, "Type");
        mount.name = read.text(*item, "Name");
        mount.source = read.text(*item, "Source");
        mount.destination = read.text(*item, "Destination");
        mount.read_write = read.flag(*item, "RW");
        mounts.push_back(std::move(mount));
    }
    return mounts;
}

std::optional<std::string> find_label(const StringMap& labels, std::string_view key) {
    for (const auto& [name, value] : labels) {
        if (name == key) return value;
    }
    return std::nullopt;
}

ContainerSummary read_summary(DocumentReader& read, const json::object& from) {
    ContainerSummary container;
    container.id = read.required(from, "Id");
    for (std::string& name : read.strings(from, "Names")) {
        container.names.push_back(without_slash(std::move(name)));
    }
    container.image = read.text(from, "Image");
    container.image_id = read.text(from, "ImageID");
    container.state = read.text(from, "State");
    container.status = read.text(from, "Status");
    std::int64_t created = read.integer(from, "Created");
    constexpr std::int64_t kEndOfYear9999 = 253'402'300'799;
    if (created > 0 && created <= kEndOfYear9999) {
        container.created_at = Timestamp(std::chrono::seconds(created));
    }
    container.labels = read.string_map(from, "Labels");
    for (const json::object* item : read.objects(from, "Ports")) {
        PublishedPort port;
        port.container_port = static_cast<std::uint16_t>(read.count(*item, "PrivatePort"));
        port.host_port = static_cast<std::uint16_t>(read.count(*item, "PublicPort"));
        port.host_ip = read.text(*item, "IP");
        port.protocol = read.text(*item, "Type");
        container.ports.push_back(std::move(port));
    }
    container.network_mode = read.text(read.object(from, "HostConfig"), "NetworkMode");
    container.networks = read_networks(read, read.object(from, "NetworkSettings"));
    // Podman lists mounts by their destination alone.
    const json::value* mounts = json::find(from, "Mounts");
    bool described = mounts != nullptr && mounts->is_array() && !mounts->get_array().empty() &&
                     mounts->get_array().front().is_object();
    if (described) container.mounts = read_mounts(read, from);
    return container;
}

}  // namespace

std::optional<std::string> ContainerInfo::label(std::string_view key) const {
    return find_label(labels, key);
}

std::optional<std::string> ContainerSummary::label(std::string_view key) const {
    return find_label(labels, key);
}

std::uint16_t ContainerInfo::host_port(std::uint16_t wanted) const {
    for (const PublishedPort& port : ports) {
        bool same = port.container_port == wanted && port.protocol == "tcp";
        if (same && port.host_port != 0) return port.host_port;
    }
    return 0;
}

Result<ContainerInfo> decode_container(json::value document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    ContainerInfo container;
    container.id = read.required(from, "Id");
    container.name = without_slash(read.text(from, "Name"));
    container.image_id = read.text(from, "Image");
    container.platform = read.text(from, "Platform");
    container.created_at = read.time(from, "Created");
    container.state = read_state(read, read.object(from, "State"));
    const json::object& config = read.object(from, "Config");
    container.image = read.text(config, "Image");
    container.labels = read.string_map(config, "Labels");
    container.env = read.strings(config, "Env");
    container.cmd = read.strings(config, "Cmd");
    container.entrypoint = read.strings(config, "Entrypoint");
    container.tty = read.flag(config, "Tty");
    const json::object& host = read.object(from, "HostConfig");
    container.runtime = read.text(host, "Runtime");
    container.network_mode = read.text(host, "NetworkMode");
    container.nano_cpus = read.integer(host, "NanoCpus");
    container.memory_bytes = read.integer(host, "Memory");
    container.pids_limit = read.integer(host, "PidsLimit");
    const json::object& network = read.object(from, "NetworkSettings");
    container.ip_address = read.text(network, "IPAddress");
    container.networks = read_networks(read, network);
    container.ports = read_port_map(read, network);
    container.mounts = read_mounts(read, from);
    if (auto status = read.status(); !status) return status.error();
    container.document = std::move(document);
    return container;
}

Result<std::vector<ContainerSummary>> decode_container_list(const json::value& document) {
    DocumentReader read;
    std::vector<ContainerSummary> containers;
    for (const json::object* item : read.objects(document, "containers")) {
        containers.push_back(read_summary(read, *item));
    }
    if (auto status = read.status(); !status) return status.error();
    return containers;
}

Result<CreatedContainer> decode_created(const json::value& document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    CreatedContainer created;
    created.id = read.required(from, "Id");
    created.warnings = read.strings(from, "Warnings");
    if (auto status = read.status(); !status) return status.error();
    return created;
}

Result<ContainerStats> decode_stats(const json::value& document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    ContainerStats stats;
    const json::object& cpu = read.object(from, "cpu_stats");
    stats.cpu_nanoseconds = read.count(read.object(cpu, "cpu_usage"), "total_usage");
    stats.system_cpu_nanoseconds = read.count(cpu, "system_cpu_usage");
    stats.online_cpus = read.count(cpu, "online_cpus");
    const json::object& memory = read.object(from, "memory_stats");
    stats.memory_bytes = read.count(memory, "usage");
    stats.memory_limit_bytes = read.count(memory, "limit");
    const json::object& parts = read.object(memory, "stats");
    std::uint64_t cache = read.count(parts, "total_inactive_file");
    if (cache == 0) cache = read.count(parts, "inactive_file");
    if (cache < stats.memory_bytes) stats.memory_bytes -= cache;
    stats.pids = read.count(read.object(from, "pids_stats"), "current");
    const json::object& networks = read.object(from, "networks");
    for (const auto& [name, ignored] : networks) {
        const json::object& network = read.object(networks, name);
        stats.received_bytes += read.count(network, "rx_bytes");
        stats.sent_bytes += read.count(network, "tx_bytes");
    }
    if (auto status = read.status(); !status) return status.error();
    return stats;
}

}  // namespace opensandbox::runtime::docker
