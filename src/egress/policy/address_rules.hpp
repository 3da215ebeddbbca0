#pragma once

#include "egress/policy/effective_policy.hpp"

#include <vector>

namespace opensandbox::egress {

/// Networks of both families under one limit of ports, without overlap within a family.
struct ScopedBlocks {
    Scope scope;
    std::vector<net::AddressBlock> v4;
    std::vector<net::AddressBlock> v6;
    friend bool operator==(const ScopedBlocks&, const ScopedBlocks&) = default;
};

/// What a packet filter needs of a policy, to be asked in this order: deny, allow_special, (the
/// special networks: deny), learned addresses, allow, default_action. One entry for each limit of
/// ports, those without limit first.
struct AddressRules {
    std::vector<ScopedBlocks> deny;
    /// Those of `allow` that lie within special_blocks(): only what a rule names so may be reached
    /// there. A wider one, such as 0.0.0.0/0, is not among them.
    std::vector<ScopedBlocks> allow_special;
    std::vector<ScopedBlocks> allow;
    Action default_action = Action::deny;

    /// Whether any special network is allowed.
    [[nodiscard]] bool allows_special() const { return !allow_special.empty(); }
    friend bool operator==(const AddressRules&, const AddressRules&) = default;
};

AddressRules address_rules(const EffectivePolicy& policy);

}  // namespace opensandbox::egress
