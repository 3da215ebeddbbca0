#pragma once

#include "opensandbox/credential_vault.hpp"
#include "opensandbox/egress.hpp"

#include <string>
#include <string_view>
#include <vector>

/// JSON of the egress contract (network sections 1.1 and 1.9) to and from the public types.
namespace opensandbox::sdk::wire {

std::string encode_rules(const std::vector<NetworkRule>& rules);
std::string encode_targets(const std::vector<std::string>& targets);
std::string encode_policy(const NetworkPolicy& policy);
/// Answers to changes hold no policy.
Result<EgressStatus> decode_egress_status(std::string_view body, bool with_policy);

/// The document, compact; `invalid_argument` when it is no JSON object.
Result<std::string> check_vault_document(std::string_view text);
Result<VaultState> decode_vault(std::string_view body);
Result<std::vector<CredentialInfo>> decode_credentials(std::string_view body);
Result<CredentialInfo> decode_credential(std::string_view body);
Result<std::vector<BindingInfo>> decode_bindings(std::string_view body);
Result<BindingInfo> decode_binding(std::string_view body);

}  // namespace opensandbox::sdk::wire
