#pragma once

#include "base/error.hpp"
#include "model/field_error.hpp"
#include "model/network_policy.hpp"

#include <string_view>

/// Bodies of the /networkpolicy routes (lifecycle 3.5): every broken rule, none when it is fine.
namespace opensandbox::model {

/// PUT: a NetworkPolicy.
FieldErrors check_policy_body(std::string_view body);
/// The policy of such a body; `invalid_argument` with the first broken rule.
Result<NetworkPolicy> parse_policy_body(std::string_view body);
/// PATCH: an array of egress rules.
FieldErrors check_rules_body(std::string_view body);
/// Whether a rule of a body that passed its check is limited by `ports`.
bool has_ports(std::string_view body);
/// DELETE: an array of targets.
FieldErrors check_targets_body(std::string_view body);

}  // namespace opensandbox::model
