#pragma once

#include "egress/rules/policy_rules.hpp"
#include "support/catch_result.hpp"
#include "support/veth.hpp"

#include <string>

/// What tests of either table put in force.
namespace opensandbox::test {

namespace rules = egress::rules;

template <class T>
void must(const Result<T>& result) {
    if (!result) FAIL(result.error().message());
}

/// Everything that names were allowed stays so.
inline bool keep_all(const std::string&, const rules::Scope&) {
    return true;
}

inline rules::ScopedPrefix allow(const std::string& address, unsigned length,
                                 const rules::Scope& scope = {}) {
    return {rules::Prefix(ip(address), length), scope};
}

/// Nothing but what names stand for, on all ports.
inline rules::PolicyRules names_only() {
    rules::PolicyRules policy;
    policy.learned_scopes = {rules::Scope()};
    policy.refuse_private = false;  // The test's outside is such an address in IPv6.
    return policy;
}

}  // namespace opensandbox::test
