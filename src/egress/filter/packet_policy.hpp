#pragma once

#include "egress/policy/effective_policy.hpp"
#include "egress/rules/policy_rules.hpp"

#include <vector>

/// Policies as the packet filter wants them. Pure.
namespace opensandbox::egress {

/// What the filter is told besides the policy.
struct PacketPolicySettings {
    bool filtering = true;  ///< mode dns+nft; without, addresses are not judged (network 1.2)
    bool block_doh = false;
    std::vector<net::AddressBlock> doh_servers;
    std::vector<std::uint16_t> intercepted_ports;
};

rules::PolicyRules packet_rules(const EffectivePolicy& policy,
                                const PacketPolicySettings& settings);

/// In which scopes addresses are learned for a name that was granted these ports. They are made of
/// packet_rules().learned_scopes of the same policy.
std::vector<rules::Scope> learned_scopes(const EffectivePolicy& policy, const PortSet& granted);

/// Whether what was granted holds all of a scope in which an address was learned.
bool holds(const PortSet& granted, const rules::Scope& scope);

}  // namespace opensandbox::egress
