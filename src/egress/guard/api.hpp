#pragma once

#include "egress/audit/denial_log.hpp"
#include "egress/policy/policy_store.hpp"
#include "egress/vault/preconditions.hpp"
#include "egress/vault/vault.hpp"
#include "http/exchange.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::egress {

inline constexpr std::string_view kAuthField = "OPENSANDBOX-EGRESS-AUTH";
/// Bodies are cut behind this many bytes.
inline constexpr std::size_t kMaxApiBody = 1024 * 1024;

/// What the API speaks for; the pointers are borrowed and outlive it.
struct ApiServices {
    PolicyStore* policies = nullptr;
    Vault* vault = nullptr;
    const DenialLog* denials = nullptr;
    std::string token;             ///< empty: the API is open
    std::string enforcement_mode;  ///< "dns" or "dns+nft"
    /// What a write of the vault rests on, now.
    std::function<VaultConditions()> conditions;
    /// Keeps for a later process whether there is a vault; may be empty.
    std::function<Awaitable<Status>(bool held)> mark_vault;
    /// Called once the vault has changed; may be empty.
    std::function<void()> vault_changed;
    bool vault_requires_tls = false;
    std::vector<net::AddressBlock> trusted_proxies;
    /// Why /healthz is to say 503; nothing when all is well. May be empty.
    std::function<std::optional<std::string>()> unhealthy;
    /// Prometheus text for /metrics; without it there is no such route.
    std::function<std::string()> metrics;
};

/// The HTTP API of network contract 1.1, and as additions GET /policy/denials and GET /metrics.
class Api {
  public:
    explicit Api(ApiServices services) : services_(std::move(services)) {}

    /// Answers one request.
    Awaitable<void> handle(http::Exchange& exchange);

  private:
    Awaitable<http::Response> answer(http::Exchange& exchange);
    Awaitable<http::Response> answer_policy(http::Exchange& exchange);
    Awaitable<http::Response> replace_policy(std::string body);
    Awaitable<http::Response> patch_policy(std::string body);
    Awaitable<http::Response> delete_rules(std::string body);
    [[nodiscard]] http::Response policy_reply(const Result<PolicyPtr>& changed,
                                              std::string_view reason = {}) const;
    Awaitable<http::Response> answer_vault(http::Exchange& exchange);
    Awaitable<http::Response> write_vault(http::Exchange& exchange);
    [[nodiscard]] Awaitable<Status> mark_vault(bool held) const;
    void tell_vault_changed() const;
    [[nodiscard]] http::Response read_vault(std::string_view path) const;
    [[nodiscard]] http::Response read_denials(std::string_view query) const;
    [[nodiscard]] std::optional<http::Response> refuse_vault_write(http::Exchange& exchange) const;
    [[nodiscard]] bool authorized(const http::Exchange& exchange) const;

    ApiServices services_;
};

}  // namespace opensandbox::egress
