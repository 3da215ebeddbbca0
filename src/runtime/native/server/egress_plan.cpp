#include "runtime/native/server/egress_plan.hpp"

#include "base/log.hpp"
#include "egress/settings/names.hpp"
#include "egress/settings/values.hpp"

#include <algorithm>

namespace opensandbox::runtime::native {

namespace {

namespace setting = egress::setting;

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
    return terms.wanted && is_set(terms.environment, setting::kTransparent);
}

std::string interception_mode(const EgressTerms& terms) {
    if (!is_intercepted(terms)) return {};
    const bool bound = std::ranges::any_of(terms.environment, [](const auto& item) {
        return item.first == setting::kInterceptionMode && item.second == setting::kCredentialBound;
    });
    return bound ? std::string(setting::kCredentialBound) : "all";
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
        if (spec.credential_proxy && name == setting::kTransparent) continue;
        terms.environment.emplace_back(name, value);
    }
    if (spec.credential_proxy) terms.environment.emplace_back(setting::kTransparent, "true");
    // An enforcer that does not know it refuses the sandbox.
    if (spec.credential_bound)
        terms.environment.emplace_back(setting::kInterceptionMode, setting::kCredentialBound);
    const bool proxied = has(host, setting::kUpstreamProxy);
    if (proxied && !is_intercepted(terms)) {
        return invalid(
            "networkPolicy: the configured egress.upstream_proxy needs "
            "credentialProxy.enabled or env." +
            std::string(setting::kTransparent) + ".");
    }
    if ((proxied || spec.credential_proxy) && is_set(terms.environment, setting::kInsecure)) {
        return invalid("env." + std::string(setting::kInsecure) +
                       ": must not be set with credentialProxy or an upstream proxy.");
    }
    return terms;
}

}  // namespace opensandbox::runtime::native
