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
    std::uint64_t revision = 0;
    std::vector<Credential> credentials;
    std::vector<Binding> bindings;

    /// Null when there is none of that name.
    [[nodiscard]] const Credential* credential(std::string_view name) const;
    [[nodiscard]] const Binding* binding(std::string_view name) const;
};

/// What is known of a vault whose bindings decide what is intercepted.
enum class VaultStanding : std::uint8_t {
    bootstrapping,  ///< there was one, which went with the process that held it
    active,
    active_empty,  ///< no bindings, or no vault
};
/// "bootstrapping", "active", "active-empty".
std::string_view to_string(VaultStanding standing);

using VaultStatePtr = std::shared_ptr<const VaultState>;

/// The vault of one sandbox (network contract 1.9). In memory only. Every change is whole or not at
/// all; a secret that went is overwritten once no request uses it. Not for several threads at once;
/// what active() gives is.
class Vault {
  public:
    explicit Vault(VaultSettings settings) : settings_(std::move(settings)) {}

    /// `conflict` when there is one; `invalid_argument` for what breaks a rule.
    Result<VaultStatePtr> create(VaultCreate request, const EffectivePolicy& policy);
    /// `not_found` without a vault, `conflict` for another revision than expected (and for none in
    /// mode credential-bound), `invalid_argument` for what breaks a rule, `unavailable` while the
    /// vault is lost.
    Result<VaultStatePtr> change(VaultMutation request, const EffectivePolicy& policy);
    /// `not_found` without a vault. A lost one is known to be gone from then on.
    Status remove();
    /// `not_found` without a vault, `unavailable` while it is lost.
    [[nodiscard]] Result<VaultStatePtr> state() const;

    /// Whether the bindings stay covered by a policy that is to be: `invalid_argument`
    /// (`credential vault policy validation: ...`) when not. Fine without a vault.
    [[nodiscard]] Status check_policy(const EffectivePolicy& policy) const;

    /// What the interceptor asks; null without a vault.
    [[nodiscard]] std::shared_ptr<const ActiveVault> active() const { return active_; }

    /// There was one in another process, which ended: what it bound is not known until the vault is
    /// written again or removed.
    void lose() { lost_ = true; }
    [[nodiscard]] VaultStanding standing() const;
    /// Whether there is one, or was one that is lost.
    [[nodiscard]] bool is_held() const { return lost_ || state_ != nullptr; }

  private:
    Result<VaultStatePtr> publish(VaultState next, const EffectivePolicy& policy);

    VaultSettings settings_;
    VaultStatePtr state_;
    std::shared_ptr<const ActiveVault> active_;
    bool lost_ = false;
};

}  // namespace opensandbox::egress
