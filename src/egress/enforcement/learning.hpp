#pragma once

#include "egress/dns/address_sink.hpp"
#include "egress/enforcement/name_gate.hpp"
#include "egress/enforcement/resolved_names.hpp"
#include "egress/policy_store/policy_store.hpp"
#include "egress/rules/learned_addresses.hpp"

#include <vector>

namespace opensandbox::egress {

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
