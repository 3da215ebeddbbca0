#pragma once

#include "base/error.hpp"
#include "egress/vault/binding.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The bodies of the vault's routes (network contract 1.9). Unknown members are refused; null is as
/// good as absent. Errors are `invalid_argument` and name the place (`bindings[2].match.hosts[0]:
/// ...`), never a value of a credential.
namespace opensandbox::egress {

inline constexpr std::size_t kMaxVaultBytes = 1024 * 1024;
/// Of credentials, and of bindings.
inline constexpr std::size_t kMaxVaultItems = 256;
/// Of hosts, paths, methods, headers, substitutions in one binding.
inline constexpr std::size_t kMaxBindingItems = 32;

struct VaultCreate {
    std::vector<Credential> credentials;
    std::vector<Binding> bindings;
};

/// Applied in the order deleted, replaced, added.
struct VaultMutation {
    std::optional<std::uint64_t> expected_revision;
    std::vector<Credential> add_credentials;
    std::vector<Credential> replace_credentials;
    std::vector<std::string> delete_credentials;
    std::vector<Binding> add_bindings;
    std::vector<Binding> replace_bindings;
    std::vector<std::string> delete_bindings;
};

/// The caller wipe()s the body.
Result<VaultCreate> parse_vault_create(std::string_view body);
Result<VaultMutation> parse_vault_mutation(std::string_view body);

}  // namespace opensandbox::egress
