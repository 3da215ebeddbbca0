#pragma once

#include "egress/dns/address_sink.hpp"
#include "egress/filter/resolved_names.hpp"
#include "egress/policy/policy_store.hpp"
#include "egress/rules/learned_addresses.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace opensandbox::egress {

/// The ports at which a name was allowed.
struct GrantedPorts final : public dns::VerdictScope {
    explicit GrantedPorts(PortSet granted) : ports(std::move(granted)) {}
    PortSet ports;
};

/// Of what a name resolved to, the addresses that a policy lets it open, by their lifetimes: what
/// rules for addresses deny, the packet filter refuses before it looks at what was learned.
using OpenableAddresses = std::map<std::chrono::seconds, std::vector<net::Address>>;
OpenableAddresses openable_addresses(const EffectivePolicy& policy,
                                     const std::vector<dns::LearnedAddress>& addresses,
                                     const PortSet& granted);

/// Notes for interception that the name leads to what was opened: for longer than it is open, since
/// connections outlive that.
void note_resolved(ResolvedNames& resolved, const std::string& name,
                   const OpenableAddresses& addresses);

/// Whether a policy grants names what was learned from them. Judges each name once, as one gives
/// many addresses.
rules::LearnedAddresses::StillAllowed granted_by(PolicyPtr policy);

/// With commas between, for the log.
std::string join_addresses(const std::vector<dns::LearnedAddress>& addresses);

}  // namespace opensandbox::egress
