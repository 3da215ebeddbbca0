#pragma once

#include "egress/policy/effective_policy.hpp"
#include "egress/policy/policy_json.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

/// Policies written as lists of "allow TARGET" and "deny TARGET".
namespace opensandbox::egress::test {

inline Rule rule(std::string_view text) {
    const auto space = text.find(' ');
    const Action action = text.substr(0, space) == "allow" ? Action::allow : Action::deny;
    return Rule(action, Target::parse(text.substr(space + 1)).value());
}

inline PolicyRule written_rule(std::string_view text) {
    Rule made = rule(text);
    return {made.action, std::move(made.target)};
}

inline std::vector<Rule> rules(std::initializer_list<std::string_view> texts) {
    std::vector<Rule> list;
    for (const std::string_view text : texts)
        list.push_back(rule(text));
    return list;
}

inline Policy policy(std::initializer_list<std::string_view> texts,
                     Action default_action = Action::deny) {
    Policy made;
    made.default_action = default_action;
    for (const std::string_view text : texts)
        made.rules.push_back(written_rule(text));
    return made;
}

/// The policy of a JSON text, which is right.
inline Policy written(std::string_view json) {
    return parse_policy(json).value();
}

inline std::string texts(const std::vector<Rule>& list) {
    std::string out;
    for (const Rule& rule : list) {
        if (!out.empty()) out += ", ";
        out += std::string(to_string(rule.action)) + " " + rule.target.text();
    }
    return out;
}

inline std::string texts(const std::vector<PolicyRule>& list) {
    std::string out;
    for (const PolicyRule& rule : list) {
        if (!out.empty()) out += ", ";
        out += std::string(to_string(rule.action));
        if (rule.target) out += " " + rule.target->text();
        if (!rule.ports.empty()) out += " " + ports_text(rule.ports);
    }
    return out;
}

inline net::Address address(std::string_view text) {
    return boost::asio::ip::make_address(text);
}

}  // namespace opensandbox::egress::test
