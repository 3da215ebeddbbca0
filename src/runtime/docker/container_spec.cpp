#include "runtime/docker/container_spec.hpp"

#include "runtime/docker/names.hpp"

#include <algorithm>
#include <cmath>

namespace opensandbox::runtime::docker {
namespace {

constexpr double kNanoCpus = 1e9;
constexpr std::string_view kIsolationDirectory = "/var/lib/execd/isolation";

void set_variable(StringMap& env, std::string_view name, std::string value) {
    auto at = std::ranges::find(env, name, &StringMap::value_type::first);
    if (at != env.end()) {
        at->second = std::move(value);
    } else {
        env.emplace_back(std::string(name), std::move(value));
    }
}

json::array strings(const std::vector<std::string>& list) {
    json::array array;
    for (const std::string& item : list)
        array.emplace_back(item);
    return array;
}

json::array environment(const SandboxSpec& spec, const DockerOptions& options,
                        const ContainerPlan& plan) {
    StringMap env = options.sandbox_env;
    for (const auto& [name, value] : spec.env)
        set_variable(env, name, value);
    if (plan.transparent_egress) {
        set_variable(env, kTransparentVariable, "true");
    }
    if (options.execd_run_as_init) set_variable(env, "EXECD_INIT", "1");
    if (plan.foreign_agent) {
        set_variable(env, "EXECD", std::string(kAgentDirectory) + "/execd");
    } else {
        // The agent cannot see its own limits everywhere: cgroup v1 shows those of the host.
        if (spec.limits.memory_bytes != 0) {
            set_variable(env, "OPENSANDBOX_MEMORY_LIMIT_BYTES",
                         std::to_string(spec.limits.memory_bytes));
        }
        if (spec.limits.cpu_cores > 0) {
            set_variable(env, "OPENSANDBOX_CPU_LIMIT", std::to_string(spec.limits.cpu_cores));
        }
    }
    set_variable(env, "OPENSANDBOX_ID", spec.id);
    // Always set, so that a snapshot's own never counts.
    set_variable(env, kAgentTokenVariable, spec.agent_token);
    json::array array;
    for (const auto& [name, value] : env)
        array.emplace_back(name + "=" + value);
    return array;
}

json::array security_options(const SandboxSpec& spec, const DockerOptions& options) {
    json::array list;
    if (options.no_new_privileges) list.emplace_back("no-new-privileges=true");
    if (spec.isolation) {
        list.emplace_back("apparmor=unconfined");
        list.emplace_back("seccomp=unconfined");
        return list;
    }
    if (!options.apparmor_profile.empty()) {
        list.emplace_back("apparmor=" + options.apparmor_profile);
    }
    if (!options.seccomp_profile.empty()) list.emplace_back("seccomp=" + options.seccomp_profile);
    return list;
}

bool drops(const std::vector<std::string>& dropped, std::string_view capability) {
    return std::ranges::any_of(dropped, [&](const std::string& name) {
        return name == capability || name == "CAP_" + std::string(capability) || name == "ALL";
    });
}

void add_capabilities(json::object& host, const SandboxSpec& spec, const DockerOptions& options,
                      const ContainerPlan& plan) {
    std::vector<std::string> drop = options.drop_capabilities;
    if (joins_sidecar(plan)) {
        // With the one it could undo the sidecar's rules, with the other send past them: packets
        // with the sidecar's mark, raw frames.
        for (std::string_view capability : {"NET_ADMIN", "NET_RAW"})
            if (!drops(drop, capability)) drop.emplace_back(capability);
    }
    if (spec.isolation) {
        std::erase(drop, "SYS_ADMIN");
        host["CapAdd"] = json::array{"SYS_ADMIN"};
    }
    if (!drop.empty()) host["CapDrop"] = strings(drop);
}

void add_limits(json::object& host, const SandboxSpec& spec, const DockerOptions& options) {
    auto pids =
        spec.limits.pids != 0 ? static_cast<std::int64_t>(spec.limits.pids) : options.pids_limit;
    host["PidsLimit"] = pids;
    // 1 and not 0: where core_pattern names a program the kernel starts it at every other limit, as
    // root of the host.
    json::array limits;
    limits.emplace_back(json::object{{"Name", "core"}, {"Soft", 1}, {"Hard", 1}});
    host["Ulimits"] = std::move(limits);
    if (spec.limits.memory_bytes != 0) host["Memory"] = spec.limits.memory_bytes;
    if (spec.limits.cpu_cores > 0) {
        host["NanoCpus"] = std::llround(spec.limits.cpu_cores * kNanoCpus);
    }
    if (spec.limits.gpus != 0) {
        json::object request;
        request["Count"] = spec.limits.gpus;
        // Not json::array{json::array{…}}, which would be a copy of the inner one.
        json::array any_of;
        any_of.emplace_back(json::array{"gpu"});
        request["Capabilities"] = std::move(any_of);
        host["DeviceRequests"] = json::array{std::move(request)};
    }
}

json::object volume_mount(const std::string& name, std::string_view target, bool read_only) {
    json::object mount;
    mount["Type"] = "volume";
    mount["Source"] = name;
    mount["Target"] = target;
    mount["ReadOnly"] = read_only;
    // What the image has in that place must not be copied into the volume.
    mount["VolumeOptions"] = json::object{{"NoCopy", true}};
    return mount;
}

json::object port_bindings(const DockerOptions& options, const ContainerFacts& facts) {
    json::object bindings;
    auto bind = [&](std::uint16_t inside, std::uint16_t outside) {
        if (outside == 0) return;
        json::object binding;
        binding["HostIp"] = options.publish_host;
        binding["HostPort"] = std::to_string(outside);
        bindings[std::to_string(inside) + "/tcp"] = json::array{std::move(binding)};
    };
    bind(kAgentPort, facts.agent_port);
    bind(kHttpPort, facts.http_port);
    return bindings;
}

json::object host_config(const SandboxSpec& spec, const DockerOptions& options,
                         const ContainerPlan& plan) {
    json::object host;
    host["NetworkMode"] = plan.network_mode;
    if (!joins_sidecar(plan) && plan.network_mode != "host") {
        host["PortBindings"] = port_bindings(options, plan.facts);
    }
    host["SecurityOpt"] = security_options(spec, options);
    add_capabilities(host, spec, options, plan);
    add_limits(host, spec, options);
    if (!options.oci_runtime.empty()) host["Runtime"] = options.oci_runtime;
    std::vector<std::string> binds = options.sandbox_binds;
    binds.insert(binds.end(), plan.binds.begin(), plan.binds.end());
    if (!binds.empty()) host["Binds"] = strings(binds);
    json::array mounts;
    if (plan.runtime_volume) {
        mounts.emplace_back(volume_mount(runtime_volume_name(spec.id), kRuntimeDirectory, false));
    }
    mounts.emplace_back(volume_mount(plan.agent_volume, kAgentDirectory, true));
    host["Mounts"] = std::move(mounts);
    if (spec.isolation) {
        host["MaskedPaths"] = json::array{};
        host["ReadonlyPaths"] = json::array{};
        host["Tmpfs"] = json::object{{kIsolationDirectory, ""}};
    }
    return host;
}

}  // namespace

bool joins_sidecar(const ContainerPlan& plan) {
    return plan.network_mode.starts_with("container:");
}

json::object container_body(const SandboxSpec& spec, const DockerOptions& options,
                            const ContainerPlan& plan) {
    json::object body;
    body["Image"] = plan.image;
    body["Entrypoint"] = json::array{std::string(kAgentDirectory) + "/bootstrap.sh"};
    body["Cmd"] = strings(spec.entrypoint);
    body["Env"] = environment(spec, options, plan);
    json::object labels;
    for (const auto& [key, value] : make_labels(spec, plan.facts))
        labels[key] = value;
    body["Labels"] = std::move(labels);
    if (!joins_sidecar(plan)) {
        json::object ports;
        ports[std::to_string(kAgentPort) + "/tcp"] = json::object();
        ports[std::to_string(kHttpPort) + "/tcp"] = json::object();
        body["ExposedPorts"] = std::move(ports);
    }
    body["HostConfig"] = host_config(spec, options, plan);
    return body;
}

}  // namespace opensandbox::runtime::docker
