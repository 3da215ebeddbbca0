#pragma once

#include "model/field_rule.hpp"

#include <span>

namespace opensandbox::model {

/// DNS names in lower case: claims, pools. Their length is a rule of its own.
extern const TextPattern kDnsName;

/// The field rules of POST /sandboxes (lifecycle 2.1 and 2.8).
std::span<const FieldRule> create_request_rules();

/// Those of its networkPolicy, and of one egress rule in it.
std::span<const FieldRule> network_policy_rules();
std::span<const FieldRule> egress_rule_rules();

/// What the table cannot say of egress rules, an array that passed it: each has a target, ports or
/// both, and a name has no ports.
void check_egress_rules(const boost::json::value& rules, const Location& at, FieldErrors& errors);

}  // namespace opensandbox::model
