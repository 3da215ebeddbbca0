#pragma once

#include "egress/policy/policy.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The bodies of /policy and the files of it (network contract 1.1, 1.2). Errors are
/// `invalid_argument` with the text that the API sends, naming the rule by its index:
/// `egress[3].target: ...`. No part of it does I/O.
namespace opensandbox::egress {

/// Longest text that is read, in bytes.
inline constexpr std::size_t kMaxPolicyBytes = 16 * 1024 * 1024;

/// Rules per policy unless the environment says otherwise.
inline constexpr std::size_t kDefaultMaxRules = 4096;

/// Whether a body asks for the default policy: no rules, deny. Nothing but white space, `{}` and
/// `null` do.
bool is_reset(std::string_view body);

/// Most ports of one rule.
inline constexpr std::size_t kMaxRulePorts = 256;

/// A policy. An empty text, `{}` and `null` are the default policy. A member that is not known is
/// an error: it may be meant to narrow what is allowed.
Result<Policy> parse_policy(std::string_view text);

/// The rules of a PATCH: `empty body`, `invalid patch rules: ...` and `invalid patch rules: empty
/// array`; a rule that is none is told as `invalid merged policy: egress[0].target: ...` with its
/// index in the body.
Result<std::vector<PolicyRule>> parse_patch(std::string_view body);

/// The targets of a DELETE: `empty body`, `invalid delete targets: ...` and `invalid delete
/// targets: empty array`. What is no target is kept: it matches nothing.
Result<std::vector<std::string>> parse_delete(std::string_view body);

/// The new rules in front, in their order, of two with the same target and ports the first; then
/// those rules of before whose target and ports are not among them.
Policy merge(const Policy& policy, const std::vector<PolicyRule>& rules);

/// The policy without the rules of these names (PolicyRule::name()); `removed` is how many went.
struct Removal {
    Policy policy;
    std::size_t removed = 0;
};
Removal remove(const Policy& policy, const std::vector<std::string>& targets);

/// `too_large` (`egress rule total count N exceeds limit M`) when there are more than `limit`
/// rules; 0 is no limit. One with ports counts as often as it has stretches of them.
Status check_rule_count(const Policy& policy, std::size_t limit);

/// `invalid_argument` when a rule has ports: without the packet filter (mode dns) nothing limits
/// it.
Status check_without_filter(const Policy& policy);

/// `{"egress":[...],"defaultAction":"deny"}`, on one line. `egress` is always there.
std::string to_json(const Policy& policy);

/// The form of the policy file: indented by 2 spaces, with a line end.
std::string to_saved_json(const Policy& policy);

}  // namespace opensandbox::egress
