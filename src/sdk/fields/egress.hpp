#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto kNetworkRuleMembers = [](auto& walker, auto& rule) {
    walker.put("action", rule.action);
    walker.put(json::Field("target").may_lack().absent_if_empty(), rule.target);
    walker.put(json::Field("ports").absent_if_empty(), rule.ports);
    walker.check(!rule.target.empty() || !rule.ports.empty(), "target", "is missing");
};

/// Servers write null for a policy without rules.
inline constexpr auto kNetworkPolicyMembers = [](auto& walker, auto& policy) {
    walker.put(json::Field("defaultAction", "default_action").may_lack(), policy.default_action);
    walker.list(json::Field("egress").may_lack(), policy.egress, kNetworkRuleMembers);
};

inline constexpr auto kCredentialMembers = [](auto& walker, auto& info) {
    walker.put("name", info.name);
    walker.put(json::Field("sourceType", "source_type"), info.source_type);
    walker.put("revision", info.revision);
};

/// Empty lists are those that are left to the vault's defaults.
inline constexpr auto kCredentialMatchMembers = [](auto& walker, auto& match) {
    walker.put(json::Field("schemes").null_if_empty(), match.schemes);
    walker.put(json::Field("ports").null_if_empty(), match.ports);
    walker.put("hosts", match.hosts);
    walker.put(json::Field("methods").null_if_empty(), match.methods);
    walker.put(json::Field("paths").null_if_empty(), match.paths);
};

inline constexpr auto kBindingAuthMembers = [](auto& walker, auto& info) {
    walker.put("type", info.auth_type);
    walker.put("name", info.auth_name);
};

inline constexpr auto kBindingMembers = [](auto& walker, auto& info) {
    walker.put("name", info.name);
    walker.put("revision", info.revision);
    walker.object("match", info.match, kCredentialMatchMembers);
    walker.object_if("auth", !info.auth_type.empty(), info, kBindingAuthMembers);
};

inline constexpr auto kVaultMembers = [](auto& walker, auto& state) {
    walker.put("revision", state.revision);
    walker.list("credentials", state.credentials, kCredentialMembers);
    walker.list("bindings", state.bindings, kBindingMembers);
};

}  // namespace opensandbox::sdk::fields
