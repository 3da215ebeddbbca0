#pragma once

#include "egress/intercept/core/gate.hpp"
#include "egress/intercept/core/pass_through_list.hpp"
#include "egress/policy/policy_store.hpp"
#include "egress/vault/vault.hpp"

#include <functional>

namespace opensandbox::egress {

/// The policy as interception asks it; what it borrows outlives it.
class TargetGate final : public InterceptGate {
  public:
    using LeadsTo = std::function<bool(std::string_view name, const net::Address& address)>;

    /// Allowed names of `passed` are not intercepted; with `bound` of the others those alone that
    /// its bindings are for.
    TargetGate(const PolicyStore& store, LeadsTo leads_to, PassThroughList passed = {},
               const Vault* bound = nullptr)
        : store_(store),
          leads_to_(std::move(leads_to)),
          passed_(std::move(passed)),
          bound_(bound) {}

    TargetVerdict judge_name(ClientId client, std::string_view host, std::uint16_t port) override;
    /// Only rules for addresses open one: that a name gave it counts for the name alone.
    TargetVerdict judge_address(ClientId client, const Endpoint& target) override;
    bool leads_to(ClientId client, std::string_view host, const Endpoint& address) override;
    Interest interest(ClientId client, std::string_view host, std::uint16_t port) override;

  private:
    const PolicyStore& store_;
    LeadsTo leads_to_;
    PassThroughList passed_;
    const Vault* bound_;
};

}  // namespace opensandbox::egress
