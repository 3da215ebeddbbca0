#include "runtime/native/server/egress_plan.hpp"

#include "base/log.hpp"
#include "egress/settings/values.hpp"

#include <algorithm>

namespace opensandbox::runtime::native {

namespace {

constexpr std::string_view transparent = "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT";
constexpr std::string_view mode = "OPENSANDBOX_EGRESS_MITMPROXY_INTERCEPTION_MODE";
constexpr std::string_view credential_bound = "credential-bound";
constexpr std::string_view insecure = "OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE";
constexpr std::string_view upstream_proxy = "OPENSANDBOX_EGRESS_UPSTREAM_PROXY";

bool has(const Environment& environment, std::string_view name) {
    return std::ranges::any_of(environment, [&](const auto& item) { return item.first == name; });
}

bool is_set(const Environment& environment, std::string_view name) {
    return std::ranges::any_of(environment, [&](const auto& item) {
        return item.first == name && egress::is_truthy(item.second);
    });
}

Error invalid(const std::string& message) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER", message};
}

}  // namespace

bool is_intercepted(const EgressTerms& terms) {
    return terms.wanted && is_set(terms.environment, transparent);
}

std::string interception_mode(const EgressTerms& terms) {
    if (!is_intercepted(terms)) return {};
    const bool bound = std::ranges::any_of(terms.environment, [](const auto& item) {
        return item.first == mode && item.second == credential_bound;
    });
    return bound ? std::string(credential_bound) : "all";
}

Result<EgressTerms> plan_egress(const SandboxSpec& spec, const EgressTerms& source,
                                const Environment& host) {
    if (!spec.network_policy) {
        if (!spec.egress_env.empty()) {
            log::warn("settings of egress control without networkPolicy: dropped",
                      {{"sandbox", spec.id}});
        }
        return source;
    }
    EgressTerms terms;
    terms.wanted = true;
    terms.policy = model::to_json(*spec.network_policy);
    for (const auto& [name, value] : spec.egress_env) {
        if (spec.credential_proxy && name == transparent) continue;
        terms.environment.emplace_back(name, value);
    }
    if (spec.credential_proxy) terms.environment.emplace_back(transparent, "true");
    // An enforcer that does not know it refuses the sandbox.
    if (spec.credential_bound) terms.environment.emplace_back(mode, credential_bound);
    const bool proxied = has(host, upstream_proxy);
    if (proxied && !is_intercepted(terms)) {
        return invalid(
            "networkPolicy: the configured egress.upstream_proxy needs "
            "credentialProxy.enabled or env." +
            std::string(transparent) + ".");
    }
    if ((proxied || spec.credential_proxy) && is_set(terms.environment, insecure)) {
        return invalid("env." + std::string(insecure) +
                       ": must not be set with credentialProxy or an upstream proxy.");
    }
    return terms;
}

}  // namespace opensandbox::runtime::native
