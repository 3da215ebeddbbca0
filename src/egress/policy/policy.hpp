#pragma once

#include "egress/policy/target.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

enum class Action : std::uint8_t { deny, allow };

/// "allow" or "deny".
std::string_view to_string(Action action);

struct Rule {
    Rule(Action a, Target t) : action(a), target(std::move(t)) {}
    Action action;
    Target target;
};

/// What a user asks for; the earlier of two rules for a name wins.
struct Policy {
    Policy() = default;
    Action default_action = Action::deny;
    std::vector<Rule> rules;
};

/// The policy's kind as PolicyStatus says it: allow_all and deny_all without rules, else enforcing.
std::string_view mode_of(const Policy& policy);

}  // namespace opensandbox::egress
