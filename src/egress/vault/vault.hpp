#pragma once

#include "egress/vault/binding_rules.hpp"
#include "egress/vault/injection.hpp"
#include "egress/vault/vault_documents.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// What a vault holds at one revision; immutable, sorted by name.
struct VaultState {
    VaultState() = default;
    std::uint64_t revision = 0;
    std::vector<Credential> credentials;
    std::vector<Binding> bindings;

    /// Null when there is none of that name.
    [[nodiscard]] const Credential* credential(std::string_view name) const;
    [[nodiscard]] const Binding* binding(std::string_view name) const;
};

using VaultStatePtr = std::shared_ptr<const VaultState>;

/// The vault of one sandbox (network contract 1.9). In memory only. Every change is whole or not at
/// all; a secret that went is overwritten once no request uses it. Not for several threads at once;
/// what active() gives is.
class Vault {
  public:
    explicit Vault(VaultSettings settings) : settings_(std::move(settings)) {}

    /// `conflict` when there is one; `invalid_argument` for what breaks a rule.
    Result<VaultStatePtr> create(VaultCreate request, const EffectivePolicy& policy);
    /// `not_found` without a vault, `conflict` for another revision than expected,
    /// `invalid_argument` for what breaks a rule.
    Result<VaultStatePtr> change(VaultMutation request, const EffectivePolicy& policy);
    /// `not_found` without a vault.
    Status remove();
    /// `not_found` without a vault.
    [[nodiscard]] Result<VaultStatePtr> state() const;

    /// Whether the bindings stay covered by a policy that is to be: `invalid_argument`
    /// (`credential vault policy validation: ...`) when not. Fine without a vault.
    [[nodiscard]] Status check_policy(const EffectivePolicy& policy) const;

    /// What the interceptor asks; null without a vault.
    [[nodiscard]] std::shared_ptr<const ActiveVault> active() const { return active_; }

  private:
    Result<VaultStatePtr> publish(VaultState next, const EffectivePolicy& policy);

    VaultSettings settings_;
    VaultStatePtr state_;
    std::shared_ptr<const ActiveVault> active_;
};

}  // namespace opensandbox::egress
