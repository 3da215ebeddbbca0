#include "runtime/docker/sidecar_spec.hpp"

#include "egress/policy/policy_json.hpp"
#include "egress/settings/names.hpp"
#include "egress/settings/values.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/remembered_egress.hpp"

#include <algorithm>
#include <filesystem>

namespace opensandbox::runtime::docker {
namespace {

namespace setting = egress::setting;

/// Where our own sidecar keeps the policy as it was changed: one that dies comes back with it, not
/// with that of the create, which may allow more.
constexpr std::string_view kOwnPolicyFile = "/var/egress/policy.json";
constexpr std::string_view kCaFile = "/etc/ssl/certs/opensandbox-upstream-extra-ca.pem";

Error invalid_setting(const std::string& message) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER", message};
}

bool is_set(const SandboxSpec& spec, std::string_view name) {
    return std::ranges::any_of(spec.egress_env, [&](const auto& entry) {
        return entry.first == name && egress::is_truthy(entry.second);
    });
}

std::string value_of(const SandboxSpec& spec, std::string_view name) {
    auto at = std::ranges::find(spec.egress_env, name, &model::StringMap::value_type::first);
    return at == spec.egress_env.end() ? std::string() : at->second;
}

/// Which settings a request may make at all was checked at admission.
Status check_egress_env(const SandboxSpec& spec, const DockerOptions& options) {
    std::filesystem::path file(value_of(spec, setting::kPolicyFile));
    auto shared = std::filesystem::path(kRuntimeDirectory) / "";
    if (file.lexically_normal().string().starts_with(shared.string())) {
        return invalid_setting("env." + std::string(setting::kPolicyFile) + ": must not be in " +
                               shared.string() + ", which the sandbox may write to.");
    }
    bool guarded = spec.credential_proxy || !options.upstream_proxy_url.empty();
    if (guarded && is_set(spec, setting::kInsecure)) {
        return invalid_setting("env." + std::string(setting::kInsecure) +
                               ": must not be set with credentialProxy or an upstream proxy.");
    }
    return {};
}

/// What our sidecar would not start with, and what another may pass over.
Status check_rules(const model::NetworkPolicy& policy, const DockerOptions& options) {
    const bool limited = std::ranges::any_of(
        policy.egress, [](const model::EgressRule& rule) { return !rule.ports.empty(); });
    if (limited && egress_mode_of(options) != "dns+nft") {
        return invalid_setting("networkPolicy.egress.ports: needs egress.mode = \"dns+nft\".");
    }
    if (limited && !options.egress_image.empty()) {
        return invalid_setting(
            "networkPolicy.egress.ports: not supported with egress.image, whose sidecar "
            "may pass over them.");
    }
    if (!options.egress_image.empty()) return {};
    const auto read = egress::parse_policy(model::to_json(policy));
    return read ? Status() : invalid_setting("networkPolicy." + read.error().message());
}

json::array environment(const SandboxSpec& spec, const DockerOptions& options,
                        const SidecarPlan& plan) {
    json::array env;
    auto add = [&env](std::string_view name, const std::string& value) {
        env.emplace_back(std::string(name) + "=" + value);
    };
    add(setting::kRules, model::to_json(*spec.network_policy));
    add(setting::kMode, egress_mode_of(options));
    add(setting::kToken, plan.token);
    add(setting::kSandboxId, spec.id);
    if (!options.egress_otlp_endpoint.empty()) {
        env.emplace_back("OTEL_EXPORTER_OTLP_ENDPOINT=" + options.egress_otlp_endpoint);
    }
    if (!options.upstream_proxy_url.empty())
        add(setting::kUpstreamProxy, options.upstream_proxy_url);
    if (!options.upstream_proxy_authorization.empty()) {
        add(setting::kUpstreamProxyAuth, options.upstream_proxy_authorization);
    }
    if (!options.upstream_proxy_ca_cert_path.empty()) {
        add(setting::kExtraCa, std::string(kCaFile));
    }
    for (const auto& [name, value] : options.egress_environment) {
        const bool overridden = std::ranges::any_of(
            spec.egress_env, [&](const auto& entry) { return entry.first == name; });
        if (!overridden) env.emplace_back(name + "=" + value);
    }
    if (spec.credential_proxy) add(setting::kTransparent, "true");
    if (spec.credential_bound)
        add(setting::kInterceptionMode, std::string(setting::kCredentialBound));
    if (options.egress_image.empty() && value_of(spec, setting::kPolicyFile).empty()) {
        add(setting::kPolicyFile, std::string(kOwnPolicyFile));
    }
    for (const auto& [name, value] : spec.egress_env) {
        if (spec.credential_proxy && name == kTransparentVariable) continue;
        env.emplace_back(name + "=" + value);
    }
    return env;
}

}  // namespace

Status check_network_policy(const SandboxSpec& spec, const DockerOptions& options) {
    if (!spec.network_policy) return {};
    if (options.network_mode != "bridge") {
        return invalid_setting("networkPolicy: needs docker.network_mode = \"bridge\"; it is '" +
                               options.network_mode + "'.");
    }
    if (options.secure_runtime == "gvisor") {
        return invalid_setting("networkPolicy: not supported with gVisor.");
    }
    if (spec.credential_proxy && egress_mode_of(options) != "dns+nft") {
        return invalid_setting("credentialProxy.enabled: needs egress.mode = \"dns+nft\".");
    }
    if (spec.credential_bound && !options.egress_image.empty()) {
        return invalid_setting(
            "credentialProxy.interceptionMode: credential-bound is not supported with "
            "egress.image, whose sidecar may pass over it.");
    }
    if (!options.upstream_proxy_url.empty() && !is_transparent(spec)) {
        return invalid_setting(
            "networkPolicy: the configured egress.upstream_proxy needs "
            "credentialProxy.enabled or env." +
            std::string(kTransparentVariable) + ".");
    }
    if (Status read = check_rules(*spec.network_policy, options); !read) return read;
    return check_egress_env(spec, options);
}

bool is_transparent(const SandboxSpec& spec) {
    return spec.network_policy && (spec.credential_proxy || is_set(spec, kTransparentVariable));
}

std::string interception_mode(const SandboxSpec& spec) {
    if (!is_transparent(spec)) return {};
    return spec.credential_bound ? std::string(setting::kCredentialBound) : "all";
}

json::object sidecar_body(const SandboxSpec& spec, const DockerOptions& options,
                          const SidecarPlan& plan) {
    json::object labels;
    labels[label::kSidecarFor] = spec.id;
    labels[label::kServer] = plan.server_id;
    labels[label::kEgressRequest] = describe_egress(spec);

    json::object exposed;
    json::object bindings;
    auto publish = [&](std::uint16_t inside, std::uint16_t outside) {
        std::string key = std::to_string(inside) + "/tcp";
        exposed[key] = json::object();
        bindings[key] = json::array{
            json::object{{"HostIp", options.publish_host}, {"HostPort", std::to_string(outside)}}};
    };
    publish(kAgentPort, plan.agent_port);
    publish(kHttpPort, plan.http_port);
    publish(kEgressPort, plan.egress_port);

    json::object mount;
    mount["Type"] = "volume";
    mount["Source"] = runtime_volume_name(spec.id);
    mount["Target"] = kRuntimeDirectory;
    mount["VolumeOptions"] = json::object{{"NoCopy", true}};

    json::object host;
    host["NetworkMode"] = "bridge";
    host["CapAdd"] = json::array{"NET_ADMIN"};
    if (options.egress_image.empty()) {
        // Ours needs no more than that.
        host["CapDrop"] = json::array{"ALL"};
        host["SecurityOpt"] = json::array{"no-new-privileges=true"};
    }
    host["PortBindings"] = std::move(bindings);
    host["Mounts"] = json::array{std::move(mount)};
    if (!options.upstream_proxy_ca_cert_path.empty()) {
        host["Binds"] =
            json::array{options.upstream_proxy_ca_cert_path + ":" + std::string(kCaFile) + ":ro"};
    }
    if (options.egress_disable_ipv6 && plan.sysctls) {
        json::object sysctls;
        for (std::string_view scope : {"all", "default", "lo"})
            sysctls["net.ipv6.conf." + std::string(scope) + ".disable_ipv6"] = "1";
        host["Sysctls"] = std::move(sysctls);
    }

    json::object body;
    body["Image"] = plan.image;
    body["Env"] = environment(spec, options, plan);
    body["Labels"] = std::move(labels);
    body["ExposedPorts"] = std::move(exposed);
    body["HostConfig"] = std::move(host);
    return body;
}

}  // namespace opensandbox::runtime::docker
