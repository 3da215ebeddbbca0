#pragma once

#include "egress/policy/target.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

enum class Action : std::uint8_t { deny, allow };

/// "allow" or "deny".
std::string_view to_string(Action action);

/// What is judged by: one target with its scope.
struct Rule {
    Action action;
    Target target;
};

/// A rule as somebody wrote it. `ports` are TCP ports that it is limited to; then its target is an
/// address or a network without a port of its own, or absent: every address of both families.
struct PolicyRule {
    PolicyRule(Action a, Target t) : action(a), target(std::move(t)) {}
    PolicyRule(Action a, std::optional<Target> t, std::vector<std::uint16_t> p)
        : action(a), target(std::move(t)), ports(std::move(p)) {}
    Action action;
    std::optional<Target> target;      ///< absent only with ports
    std::vector<std::uint16_t> ports;  ///< in the order they were sent; empty: all

    /// Two rules with the same are one (PATCH): the target's key and the ports in order.
    [[nodiscard]] std::string key() const;
    /// How DELETE names it: its target, whatever its ports; `ports=80,443` when it has none.
    [[nodiscard]] std::string name() const;
    /// The rules that it stands for: one for each stretch of ports, and for each family without a
    /// target.
    void expand(std::vector<Rule>& out) const;
    /// How many of them there are, for limits.
    [[nodiscard]] std::size_t count() const;
};

/// `ports=80,443`: these ports in order, each once.
std::string ports_text(std::vector<std::uint16_t> ports);

/// What a user asks for; the earlier of two rules for a name wins.
struct Policy {
    Action default_action = Action::deny;
    std::vector<PolicyRule> rules;
};

/// The policy's kind as PolicyStatus says it: allow_all and deny_all without rules, else enforcing.
std::string_view mode_of(const Policy& policy);

}  // namespace opensandbox::egress
