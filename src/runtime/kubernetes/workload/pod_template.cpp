#include "runtime/kubernetes/workload/pod_template.hpp"

#include "egress/settings/names.hpp"
#include "model/resource_quantity.hpp"
#include "runtime/kubernetes/expansion.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/workload/volumes.hpp"

#include <algorithm>
#include <cmath>

namespace opensandbox::runtime::kubernetes {
namespace {

constexpr std::string_view kIsolationDirectory = "/var/lib/execd/isolation";
constexpr std::string_view kIsolationVolume = "isolation-upper";
constexpr std::int64_t kProbePeriodSeconds = 1;
constexpr double kMillicores = 1000;
constexpr std::uint64_t kMebibyte = 1ULL << 20;

Error invalid_parameter(const std::string& message) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER", message};
}

bool is_foreign(const KubernetesOptions& options) {
    return !options.execd_image.empty();
}

std::string bytes_text(std::uint64_t bytes) {
    return bytes % kMebibyte == 0 ? std::to_string(bytes / kMebibyte) + "Mi"
                                  : std::to_string(bytes);
}

std::string cores_text(double cores) {
    return std::to_string(static_cast<std::int64_t>(std::ceil(cores * kMillicores))) + "m";
}

json::object limits_of(const SandboxSpec& spec) {
    json::object limits;
    if (spec.limits.cpu_cores > 0) limits["cpu"] = cores_text(spec.limits.cpu_cores);
    if (spec.limits.memory_bytes != 0) limits["memory"] = bytes_text(spec.limits.memory_bytes);
    if (spec.limits.disk_bytes != 0)
        limits["ephemeral-storage"] = bytes_text(spec.limits.disk_bytes);
    if (spec.limits.gpus > 0) limits["nvidia.com/gpu"] = std::to_string(spec.limits.gpus);
    return limits;
}

/// What was asked for beside the limits; without a word of a resource it is its limit.
Result<json::object> requests_of(const SandboxSpec& spec) {
    json::object requests = limits_of(spec);
    for (const auto& [name, text] : spec.resource_requests) {
        if (name == "cpu") {
            const auto cores = model::parse_cpu(text);
            if (!cores) return invalid_parameter("resourceRequests.cpu: '" + text + "' is none.");
            requests["cpu"] = cores_text(*cores);
        } else if (name == "memory" || name == "ephemeral-storage") {
            const auto bytes = model::parse_memory(text);
            if (!bytes)
                return invalid_parameter("resourceRequests." + name + ": '" + text + "' is none.");
            requests[name] = bytes_text(*bytes);
        }
    }
    return requests;
}

json::object resources_of(const model::StringMap& limits, const model::StringMap& requests) {
    json::object resources;
    if (!limits.empty()) resources["limits"] = json::string_object(limits);
    if (!requests.empty()) resources["requests"] = json::string_object(requests);
    return resources;
}

void set_variable(model::StringMap& env, std::string_view name, std::string value) {
    const auto at = std::ranges::find(env, name, &model::StringMap::value_type::first);
    if (at != env.end()) {
        at->second = std::move(value);
    } else {
        env.emplace_back(std::string(name), std::move(value));
    }
}

json::array variables(const model::StringMap& env) {
    json::array list;
    for (const auto& [name, value] : env)
        list.emplace_back(json::object{{"name", name}, {"value", without_expansion(value)}});
    return list;
}

model::StringMap sandbox_environment(const SandboxSpec& spec, const KubernetesOptions& options) {
    model::StringMap env = spec.env;
    if (is_transparent(spec)) set_variable(env, egress::setting::kTransparent, "true");
    if (spec.hooks) set_variable(env, "OPENSANDBOX_LIFECYCLE", model::to_json(*spec.hooks));
    if (options.execd_run_as_init) set_variable(env, "EXECD_INIT", "1");
    set_variable(env, "EXECD", std::string(kSharedDirectory) + "/execd");
    if (!is_foreign(options)) {
        // The agent cannot see its own limits everywhere: cgroup v1 shows those of the node.
        if (spec.limits.memory_bytes != 0) {
            set_variable(env, "OPENSANDBOX_MEMORY_LIMIT_BYTES",
                         std::to_string(spec.limits.memory_bytes));
        }
        if (spec.limits.cpu_cores > 0)
            set_variable(env, "OPENSANDBOX_CPU_LIMIT", std::to_string(spec.limits.cpu_cores));
    }
    set_variable(env, "OPENSANDBOX_ID", spec.id);
    set_variable(env, kAgentTokenVariable, spec.agent_token);
    return env;
}

json::array agent_mount() {
    return json::array{json::object{{"name", kAgentVolume}, {"mountPath", kSharedDirectory}}};
}

/// A sidecar that is there before the sandbox and ends after it.
json::object egress_sidecar(const SandboxSpec& spec, const KubernetesOptions& options,
                            const std::string& token) {
    json::object container{{"name", kEgressContainer},
                           {"imagePullPolicy", options.pull_policy},
                           {"restartPolicy", "Always"},
                           {"volumeMounts", agent_mount()}};
    const bool own = options.egress.image.empty();
    container["image"] = own ? options.image : options.egress.image;
    if (own) container["args"] = json::array{"egress"};
    container["env"] = variables(sidecar_environment(spec, options.egress, token));
    json::object capabilities{{"add", json::array{"NET_ADMIN"}}};
    json::object context;
    if (own) {
        capabilities["drop"] = json::array{"ALL"};
        context["allowPrivilegeEscalation"] = false;
    }
    context["capabilities"] = std::move(capabilities);
    context["runAsUser"] = 0;
    container["securityContext"] = std::move(context);
    container["ports"] =
        json::array{json::object{{"name", "egress-api"}, {"containerPort", kEgressPort}}};
    json::array headers{json::object{{"name", "OPENSANDBOX-EGRESS-AUTH"}, {"value", token}}};
    json::object request{
        {"path", "/healthz"}, {"port", kEgressPort}, {"httpHeaders", std::move(headers)}};
    container["startupProbe"] =
        json::object{{"httpGet", std::move(request)},
                     {"periodSeconds", kProbePeriodSeconds},
                     {"failureThreshold", options.egress.readiness_timeout.count()}};
    if (auto resources = resources_of(options.egress_limits, options.egress_requests);
        !resources.empty()) {
        container["resources"] = std::move(resources);
    }
    return container;
}

json::object security_context(const SandboxSpec& spec) {
    json::object context;
    json::object capabilities;
    // With the one a sandbox could undo its sidecar's rules, with the other send past them.
    if (spec.network_policy) capabilities["drop"] = json::array{"NET_ADMIN", "NET_RAW"};
    if (spec.isolation) {
        capabilities["add"] = json::array{"SYS_ADMIN"};
        context["seccompProfile"] = json::object{{"type", "Unconfined"}};
        context["appArmorProfile"] = json::object{{"type", "Unconfined"}};
    }
    if (!capabilities.empty()) context["capabilities"] = std::move(capabilities);
    return context;
}

json::object sandbox_container(const SandboxSpec& spec, const KubernetesOptions& options) {
    json::array command{std::string(kSharedDirectory) + "/bootstrap.sh"};
    for (const std::string& word : spec.entrypoint)
        command.emplace_back(without_expansion(word));
    json::object container{{"name", kSandboxContainer},
                           {"image", spec.image},
                           {"imagePullPolicy", options.pull_policy},
                           {"command", std::move(command)},
                           {"env", variables(sandbox_environment(spec, options))}};
    json::object resources;
    if (json::object limits = limits_of(spec); !limits.empty())
        resources["limits"] = std::move(limits);
    if (auto requests = requests_of(spec); requests && !requests->empty())
        resources["requests"] = std::move(*requests);
    if (!resources.empty()) container["resources"] = std::move(resources);
    if (json::object context = security_context(spec); !context.empty())
        container["securityContext"] = std::move(context);
    json::array mounts = agent_mount();
    if (spec.isolation) {
        mounts.emplace_back(
            json::object{{"name", kIsolationVolume}, {"mountPath", kIsolationDirectory}});
    }
    for (json::value& mount : pod_mounts(spec))
        mounts.push_back(std::move(mount));
    container["volumeMounts"] = std::move(mounts);
    return container;
}

/// As the published installer does where a published sidecar guards names only.
void turn_off_ipv6(json::object& installer) {
    json::value& script = installer["command"].as_array().back();
    script =
        "for scope in all default lo; do "
        "[ ! -e /proc/sys/net/ipv6/conf/$scope/disable_ipv6 ] || "
        "echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6; done; " +
        std::string(script.as_string());
    installer["securityContext"] = json::object{{"privileged", true}};
}

}  // namespace

json::object installer_container(const KubernetesOptions& options) {
    json::object container{{"name", kInstallerContainer},
                           {"imagePullPolicy", options.pull_policy},
                           {"volumeMounts", agent_mount()}};
    if (is_foreign(options)) {
        const std::string to(kSharedDirectory);
        std::string script = "cp ./execd " + to + "/execd && cp ./bootstrap.sh " + to +
                             "/bootstrap.sh && chmod +x " + to + "/execd " + to + "/bootstrap.sh";
        script +=
            "; status=$?; for part in /usr/local/bin/bwrap "
            "/usr/local/libexec/opensandbox-session-gate "
            "/usr/local/libexec/opensandbox-launcher; do [ ! -e $part ] || cp $part " +
            to + "/; done";
        container["image"] = options.execd_image;
        container["command"] = json::array{"/bin/sh", "-c", script + "; exit $status"};
    } else {
        container["image"] = options.image;
        container["args"] = json::array{"install-agent", kSharedDirectory};
    }
    if (auto resources = resources_of(options.installer_limits, options.installer_requests);
        !resources.empty()) {
        container["resources"] = std::move(resources);
    }
    return container;
}

Status check_workload(const SandboxSpec& spec, const KubernetesOptions& options) {
    if (spec.limits.gpus < 0) {
        return invalid_parameter("Invalid resourceLimits.gpu: 'all'; a pod needs a count of them.");
    }
    for (const model::LimitRow& row : model::kLimits) {
        const bool known = row.member == &ResourceLimits::memory_bytes ||
                           row.member == &ResourceLimits::disk_bytes;
        if (!known && spec.limits.*row.member != 0) {
            return invalid_parameter("Invalid resourceLimits." + std::string(row.names.front()) +
                                     ": the kubernetes runtime does not support it.");
        }
    }
    if (auto requests = requests_of(spec); !requests) return requests.error();
    if (spec.platform && spec.platform->os != "linux") {
        return invalid_parameter("platform.os: '" + spec.platform->os +
                                 "' is not supported; pods of sandboxes are linux.");
    }
    if (auto checked = check_sidecar(spec, options.egress); !checked) return checked;
    return check_volumes(spec, options);
}

json::object pod_spec(const SandboxSpec& spec, const KubernetesOptions& options,
                      const std::string& egress_token) {
    json::object pod{{"automountServiceAccountToken", false},
                     {"enableServiceLinks", false},
                     {"restartPolicy", "Never"}};
    json::array first;
    json::object installer = installer_container(options);
    if (spec.network_policy && is_foreign(options) && options.egress.disable_ipv6)
        turn_off_ipv6(installer);
    first.emplace_back(std::move(installer));
    if (spec.network_policy) first.emplace_back(egress_sidecar(spec, options, egress_token));
    pod["initContainers"] = std::move(first);
    json::array containers;
    containers.emplace_back(sandbox_container(spec, options));
    pod["containers"] = std::move(containers);
    json::array volumes{json::object{{"name", kAgentVolume}, {"emptyDir", json::object()}}};
    if (spec.isolation) {
        volumes.emplace_back(
            json::object{{"name", kIsolationVolume}, {"emptyDir", json::object()}});
    }
    for (json::value& volume : pod_volumes(spec))
        volumes.push_back(std::move(volume));
    pod["volumes"] = std::move(volumes);
    if (!options.runtime_class.empty()) pod["runtimeClassName"] = options.runtime_class;
    if (spec.platform) {
        pod["nodeSelector"] = json::object{{"kubernetes.io/os", spec.platform->os},
                                           {"kubernetes.io/arch", spec.platform->arch}};
    }
    if (spec.image_auth) {
        pod["imagePullSecrets"] = json::array{json::object{{"name", image_secret_name(spec.id)}}};
    }
    return pod;
}

}  // namespace opensandbox::runtime::kubernetes
