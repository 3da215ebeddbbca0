#include "egress/guard/sandbox_guard.hpp"

#include "egress/enforcement/refusal_explanation.hpp"

namespace opensandbox::egress {

namespace {

/// Of one sandbox; a host has many.
constexpr std::size_t kResolvedNames = 5000;

AuditSettings audit_settings(const GuardedIdentity& identity) {
    AuditSettings settings;
    settings.sandbox_id = identity.id;
    return settings;
}

/// Both outlive the vault.
VaultSettings vault_settings(const SidecarOptions& options, const PassThroughList& passed) {
    VaultSettings settings;
    settings.intercept_ports = options.intercept_ports;
    settings.require_scoped_match = options.vault_requires_scoped_match;
    settings.credential_bound = options.credential_bound;
    settings.passes_through = [&](const HostPattern& host) {
        return passed.covers(host.name, host.wildcard, options.intercept_ports);
    };
    return settings;
}

}  // namespace

SandboxGuard::SandboxGuard(asio::any_io_executor executor, asio::thread_pool& files,
                           GuardedIdentity who, SidecarOptions said, LoadedPolicy loaded,
                           PacketPolicySettings packets, PassThroughList list)
    : identity(std::move(who)),
      options(std::move(said)),
      packet(std::move(packets)),
      passed(std::move(list)),
      policies(std::move(executor), files, std::move(loaded)),
      vault(vault_settings(options, passed)),
      auditor(audit_settings(identity)),
      names(policies),
      hook(vault),
      resolved(kResolvedNames) {
    auditor.set_explanation([this](const net::LoggedPacket& refused) {
        return explain_refusal(*policies.current(), refused);
    });
}

void SandboxGuard::open_api(Surroundings surroundings) {
    interceptor_ = surroundings.interceptor;
    targets = std::make_unique<TargetGate>(policies, std::move(surroundings.leads_to), passed,
                                           options.credential_bound ? &vault : nullptr);
    ApiServices services;
    services.policies = &policies;
    services.vault = &vault;
    services.denials = &auditor.denials();
    services.token = identity.token;
    services.enforcement_mode = "dns+nft";
    services.conditions = [this] { return conditions(); };
    services.vault_requires_tls = options.vault_requires_tls;
    services.trusted_proxies = options.vault_trusted_proxies;
    services.metrics = std::move(surroundings.metrics);
    services.mark_vault = std::move(surroundings.mark_vault);
    services.vault_changed = std::move(surroundings.vault_changed);
    api_ = std::make_unique<Api>(std::move(services));
}

VaultConditions SandboxGuard::conditions() const {
    VaultConditions conditions;
    conditions.api_token = !identity.token.empty();
    conditions.interception = options.intercept;
    conditions.verified_upstreams = !options.upstream_insecure;
    conditions.ready = interceptor_;
    conditions.filtering = true;
    return conditions;
}

}  // namespace opensandbox::egress
