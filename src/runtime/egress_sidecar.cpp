#include "runtime/egress_sidecar.hpp"

#include "egress/policy/policy_json.hpp"
#include "egress/settings/names.hpp"
#include "egress/settings/values.hpp"

#include <algorithm>
#include <filesystem>

namespace opensandbox::runtime {
namespace {

namespace setting = egress::setting;

/// Where our own sidecar keeps the policy as it was changed: one that dies comes back with it, not
/// with that of the create, which may allow more.
constexpr std::string_view kOwnPolicyFile = "/var/egress/policy.json";

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
Status check_egress_env(const SandboxSpec& spec, const EgressSidecarOptions& options) {
    std::filesystem::path file(value_of(spec, setting::kPolicyFile));
    auto shared = std::filesystem::path(kSharedDirectory) / "";
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
Status check_rules(const model::NetworkPolicy& policy, const EgressSidecarOptions& options) {
    const bool limited = std::ranges::any_of(
        policy.egress, [](const model::EgressRule& rule) { return !rule.ports.empty(); });
    if (limited && egress_mode_of(options) != "dns+nft") {
        return invalid_setting("networkPolicy.egress.ports: needs egress.mode = \"dns+nft\".");
    }
    if (limited && !options.image.empty()) {
        return invalid_setting(
            "networkPolicy.egress.ports: not supported with egress.image, whose sidecar "
            "may pass over them.");
    }
    if (!options.image.empty()) return {};
    const auto read = egress::parse_policy(model::to_json(policy));
    return read ? Status() : invalid_setting("networkPolicy." + read.error().message());
}

}  // namespace

std::string egress_mode_of(const EgressSidecarOptions& options) {
    if (!options.mode.empty()) return options.mode;
    return options.image.empty() ? "dns+nft" : "dns";
}

Status check_sidecar(const SandboxSpec& spec, const EgressSidecarOptions& options) {
    if (!spec.network_policy) return {};
    if (spec.credential_proxy && egress_mode_of(options) != "dns+nft") {
        return invalid_setting("credentialProxy.enabled: needs egress.mode = \"dns+nft\".");
    }
    if (spec.credential_bound && !options.image.empty()) {
        return invalid_setting(
            "credentialProxy.interceptionMode: credential-bound is not supported with "
            "egress.image, whose sidecar may pass over it.");
    }
    if (!options.upstream_proxy_url.empty() && !is_transparent(spec)) {
        return invalid_setting(
            "networkPolicy: the configured egress.upstream_proxy needs "
            "credentialProxy.enabled or env." +
            std::string(setting::kTransparent) + ".");
    }
    if (Status read = check_rules(*spec.network_policy, options); !read) return read;
    return check_egress_env(spec, options);
}

bool is_transparent(const SandboxSpec& spec) {
    return spec.network_policy && (spec.credential_proxy || is_set(spec, setting::kTransparent));
}

std::string interception_mode(const SandboxSpec& spec) {
    if (!is_transparent(spec)) return {};
    return spec.credential_bound ? std::string(setting::kCredentialBound) : "all";
}

model::StringMap sidecar_environment(const SandboxSpec& spec, const EgressSidecarOptions& options,
                                     const std::string& token) {
    model::StringMap env;
    auto add = [&env](std::string_view name, const std::string& value) {
        env.emplace_back(std::string(name), value);
    };
    add(setting::kRules, model::to_json(*spec.network_policy));
    add(setting::kMode, egress_mode_of(options));
    add(setting::kToken, token);
    add(setting::kSandboxId, spec.id);
    if (!options.otlp_endpoint.empty()) {
        add("OTEL_EXPORTER_OTLP_ENDPOINT", options.otlp_endpoint);
    }
    if (!options.upstream_proxy_url.empty())
        add(setting::kUpstreamProxy, options.upstream_proxy_url);
    if (!options.upstream_proxy_authorization.empty()) {
        add(setting::kUpstreamProxyAuth, options.upstream_proxy_authorization);
    }
    if (!options.upstream_proxy_ca_cert_path.empty()) {
        add(setting::kExtraCa, std::string(kUpstreamCaFile));
    }
    for (const auto& [name, value] : options.environment) {
        const bool overridden = std::ranges::any_of(
            spec.egress_env, [&](const auto& entry) { return entry.first == name; });
        if (!overridden) add(name, value);
    }
    if (spec.credential_proxy) add(setting::kTransparent, "true");
    if (spec.credential_bound)
        add(setting::kInterceptionMode, std::string(setting::kCredentialBound));
    if (options.image.empty() && value_of(spec, setting::kPolicyFile).empty()) {
        add(setting::kPolicyFile, std::string(kOwnPolicyFile));
    }
    for (const auto& [name, value] : spec.egress_env) {
        if (spec.credential_proxy && name == setting::kTransparent) continue;
        add(name, value);
    }
    return env;
}

}  // namespace opensandbox::runtime
