#include "sdk/wire_egress.hpp"

#include "sdk/fields/egress.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

json::array rule_array(const std::vector<NetworkRule>& rules) {
    json::array array;
    for (const auto& rule : rules)
        array.emplace_back(json::write_fields(rule, fields::kNetworkRuleMembers));
    return array;
}

}  // namespace

std::string encode_rules(const std::vector<NetworkRule>& rules) {
    return json::serialize(rule_array(rules));
}

std::string encode_targets(const std::vector<std::string>& targets) {
    return json::serialize(json::array(targets.begin(), targets.end()));
}

std::string encode_policy(const NetworkPolicy& policy) {
    json::object body;
    if (!policy.default_action.empty()) body["defaultAction"] = policy.default_action;
    body["egress"] = rule_array(policy.egress);
    return json::serialize(body);
}

Result<EgressStatus> decode_egress_status(std::string_view body, bool with_policy) {
    std::optional<NetworkPolicy> policy;
    auto read = decode_document<EgressStatus>(body, [&](auto& walker, auto& status) {
        walker.put(json::Field("mode").may_lack(), status.mode);
        walker.put(json::Field("enforcementMode").may_lack(), status.enforcement_mode);
        walker.put(json::Field("reason").may_lack(), status.reason);
        walker.object("policy", policy, fields::kNetworkPolicyMembers);
        walker.check(policy || !with_policy, "policy", "is missing");
    });
    if (!read || !policy) return read;
    if (policy->default_action.empty()) policy->default_action = "deny";
    read->policy = std::move(*policy);
    return read;
}

Result<std::string> check_vault_document(std::string_view text) {
    auto document = json::parse(text);
    if (document && document->is_object()) return json::serialize(*document);
    // What is wrong is told without quoting: the text holds secrets.
    return Error(ErrorCode::invalid_argument, "the vault's document must be a JSON object");
}

Result<VaultState> decode_vault(std::string_view body) {
    return decode_document<VaultState>(body, fields::kVaultMembers);
}

Result<std::vector<CredentialInfo>> decode_credentials(std::string_view body) {
    return decode_documents<CredentialInfo>(body, "credentials", fields::kCredentialMembers);
}

Result<CredentialInfo> decode_credential(std::string_view body) {
    return decode_document<CredentialInfo>(body, fields::kCredentialMembers);
}

Result<std::vector<BindingInfo>> decode_bindings(std::string_view body) {
    return decode_documents<BindingInfo>(body, "bindings", fields::kBindingMembers);
}

Result<BindingInfo> decode_binding(std::string_view body) {
    return decode_document<BindingInfo>(body, fields::kBindingMembers);
}

}  // namespace opensandbox::sdk::wire
