#include "egress/guard/sandbox_guard.hpp"

#include "egress/guard/policy_log.hpp"
#include "egress/guard/refusal_explanation.hpp"
#include "egress/settings/names.hpp"
#include "egress/vault/vault_mark.hpp"

namespace opensandbox::egress {

namespace {

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
                           FilteredSandbox where, PassThroughList list)
    : identity(std::move(who)),
      options(std::move(said)),
      passed(std::move(list)),
      filtered(std::move(where)),
      policies(executor, files, std::move(loaded)),
      vault(vault_settings(options, passed)),
      auditor(audit_settings(identity)),
      names(policies),
      hook(vault),
      executor_(std::move(executor)),
      files_(files) {
    auditor.set_explanation([this](const net::LoggedPacket& refused) {
        return explain_refusal(*policies.current(), refused);
    });
}

Status SandboxGuard::set_webhook(ConnectOrigin connect) {
    WebhookSettings webhook;
    webhook.url = options.deny_webhook;
    webhook.sandbox_id = identity.id;
    webhook.connect = std::move(connect);
    auto made = DenialWebhook::make(executor_, std::move(webhook));
    if (!made) return made.error().within(setting::kDenyWebhook);
    auditor.set_webhook(std::move(*made));
    return {};
}

void SandboxGuard::join(Surroundings surroundings) {
    surroundings_ = std::move(surroundings);
    targets = std::make_unique<TargetGate>(
        policies,
        [this](std::string_view name, const net::Address& address) {
            return surroundings_.filter->leads_to(filtered, name, address);
        },
        passed, options.credential_bound ? &vault : nullptr);
    follow_policy();
    api_ = std::make_unique<Api>(services());
}

void SandboxGuard::follow_policy() {
    PolicyFollowers followers;
    followers.covered = [this](const EffectivePolicy& policy) {
        return vault.check_policy(policy);
    };
    followers.enforce = [this](const PolicyPtr& policy) {
        return surroundings_.filter->enforce(filtered, policy);
    };
    followers.published = [this](const PolicyPtr& before, const PolicyPtr& now) {
        log_policy_change(*before, *now, identity.id);
        if (Interceptor* interceptor = surroundings_.interceptor()) {
            interceptor->recheck(identity.client);
        }
    };
    policies.follow(std::move(followers));
}

ApiServices SandboxGuard::services() {
    ApiServices services;
    services.policies = &policies;
    services.vault = &vault;
    services.denials = &auditor.denials();
    services.token = identity.token;
    services.enforcement_mode = filtered.settings.filtering ? "dns+nft" : "dns";
    services.conditions = [this] { return conditions(); };
    services.vault_requires_tls = options.vault_requires_tls;
    services.trusted_proxies = options.vault_trusted_proxies;
    services.unhealthy = [this]() -> std::optional<std::string> {
        if (options.intercept && surroundings_.interceptor() == nullptr)
            return "mitmproxy not ready";
        return std::nullopt;
    };
    services.metrics = surroundings_.metrics;
    if (options.credential_bound) {
        services.mark_vault = [this](bool held) -> Awaitable<Status> {
            std::function<Status()> work = [file = surroundings_.vault_mark, held] {
                return mark_vault(file, held);
            };
            co_return co_await net::run_blocking(files_, std::move(work));
        };
        services.vault_changed = [this] {
            if (Interceptor* interceptor = surroundings_.interceptor()) {
                interceptor->retire_unbound(identity.client);
            }
        };
    }
    return services;
}

VaultConditions SandboxGuard::conditions() const {
    VaultConditions conditions;
    conditions.api_token = !identity.token.empty();
    conditions.interception = options.intercept;
    conditions.verified_upstreams = !options.upstream_insecure;
    conditions.ready = surroundings_.interceptor() != nullptr;
    conditions.filtering = filtered.settings.filtering;
    return conditions;
}

}  // namespace opensandbox::egress
