#pragma once

#include "egress/vault/vault.hpp"

#include <string>
#include <string_view>

/// The replies of the vault's routes (network contract 1.9): one line with a line end. No reply
/// holds a credential's value.
namespace opensandbox::egress {

/// `{revision, credentials:[{name,sourceType,revision}], bindings:[{name,revision,match,auth}]}`.
std::string to_json(const VaultState& state);
/// `{revision, credentials}` and `{revision, bindings}`.
std::string credentials_json(const VaultState& state);
std::string bindings_json(const VaultState& state);
/// One of them; `not_found` with the contract's text.
Result<std::string> credential_json(const VaultState& state, std::string_view name);
Result<std::string> binding_json(const VaultState& state, std::string_view name);

}  // namespace opensandbox::egress
