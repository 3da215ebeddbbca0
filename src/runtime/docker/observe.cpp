#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"

namespace opensandbox::runtime::docker {
namespace {

constexpr double kNanoCpusOfCpu = 1e9;

void fill_ports(const ContainerInfo& info, Inspection& out) {
    for (const auto& port : info.ports) {
        if (port.host_port == 0) continue;
        out.ports.emplace_back(std::to_string(port.container_port) + "/" + port.protocol,
                               port.host_ip + ":" + std::to_string(port.host_port));
    }
}

void fill_environment(const ContainerInfo& info, Inspection& out) {
    for (const std::string& entry : info.env) {
        std::size_t equals = entry.find('=');
        std::string value = equals == std::string::npos ? "" : entry.substr(equals + 1);
        out.environment.emplace_back(entry.substr(0, equals), std::move(value));
    }
}

void fill_health(const ContainerInfo& info, Inspection& out) {
    if (!info.state.health) return;
    out.health = info.state.health->status;
    for (const HealthProbe& probe : info.state.health->log) {
        std::string line = probe.start ? to_rfc3339(*probe.start) + " " : std::string();
        out.health_log.push_back(line + "exit " + std::to_string(probe.exit_code) + ": " +
                                 probe.output);
    }
}

Inspection inspection_of(const ContainerInfo& info) {
    Inspection out;
    out.object_id = info.id;
    out.name = info.name;
    out.image = info.image;
    out.status = info.state.status;
    out.running = info.state.running;
    out.paused = info.state.paused;
    out.oom_killed = info.state.oom_killed;
    out.exit_code = static_cast<int>(info.state.exit_code);
    out.error = info.state.error;
    out.created_at = info.created_at;
    out.started_at = info.state.started_at;
    out.finished_at = info.state.finished_at;
    ResourceLimits& limits = out.limits;
    if (info.nano_cpus > 0) limits.cpu_cores = static_cast<double>(info.nano_cpus) / kNanoCpusOfCpu;
    if (info.memory_bytes > 0) limits.memory_bytes = static_cast<std::uint64_t>(info.memory_bytes);
    if (info.pids_limit > 0) limits.pids = static_cast<std::uint64_t>(info.pids_limit);
    out.network_mode = info.network_mode;
    for (const auto& network : info.networks)
        out.addresses.emplace_back(network.network, network.ip_address);
    fill_ports(info, out);
    out.labels = without_secrets(info.labels);
    fill_environment(info, out);
    fill_health(info, out);
    return out;
}

}  // namespace

Error DockerRuntime::not_found(const std::string& id) {
    return {ErrorCode::not_found, "DOCKER::SANDBOX_NOT_FOUND", "Sandbox " + id + " not found."};
}

Awaitable<Result<std::string>> DockerRuntime::logs(std::string id, LogQuery query) {
    LogRequest request(container_of(id));
    request.tail = static_cast<std::uint32_t>(query.tail);
    request.since = query.since;
    request.timestamps = query.timestamps;
    auto output = co_await engine_.container_logs(std::move(request));
    if (output) co_return std::move(output->text);
    if (output.error().code() == ErrorCode::not_found) co_return not_found(id);
    co_return failure("SANDBOX_QUERY_FAILED", output.error().message());
}

Awaitable<Result<Inspection>> DockerRuntime::inspect(std::string id) {
    auto info = co_await engine_.inspect_container(container_of(id));
    if (info) co_return inspection_of(*info);
    if (info.error().code() == ErrorCode::not_found) co_return not_found(id);
    co_return failure("SANDBOX_QUERY_FAILED", info.error().message());
}

}  // namespace opensandbox::runtime::docker
