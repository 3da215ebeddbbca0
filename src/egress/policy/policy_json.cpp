#include "egress/policy/policy_json.hpp"

#include "base/json_string.hpp"
#include "egress/policy/blank.hpp"
#include "json/document.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <unordered_set>

namespace opensandbox::egress {
namespace {

/// An error of a rule's content, which is told apart from one of the document's shape.
struct RuleError {
    bool shape = false;
    std::string message;
};

/// "" is deny.
std::optional<Action> parse_action(std::string_view text) {
    const std::string word = lower_case(trim(text));
    if (word.empty() || word == "deny") return Action::deny;
    if (word == "allow") return Action::allow;
    return std::nullopt;
}

/// As an error shows what somebody sent: quoted, not too long.
std::string quoted(std::string_view text) {
    constexpr std::size_t kShown = 64;
    std::string out;
    append_json_string(out, trim(text).substr(0, kShown));
    return out;
}

/// The first member that is none of `known`, as an error names it; "" when there is none.
std::string unknown_member(const json::object& object,
                           std::initializer_list<std::string_view> known) {
    for (const auto& member : object) {
        if (std::ranges::find(known, std::string_view(member.key())) == known.end()) {
            return "unknown member " + quoted(member.key());
        }
    }
    return {};
}

/// What is wrong with the ports, "" when nothing is.
std::string read_ports(const json::value& list, std::vector<std::uint16_t>& ports) {
    if (!list.is_array()) return "must be an array";
    if (list.get_array().empty()) return "must hold at least one port";
    if (list.get_array().size() > kMaxRulePorts) return "must not be more than 256";
    for (const json::value& item : list.get_array()) {
        if (!item.is_int64() || item.get_int64() < 1 || item.get_int64() > 65535) {
            return "a port must be a number from 1 to 65535";
        }
        ports.push_back(static_cast<std::uint16_t>(item.get_int64()));
    }
    return {};
}

/// What ports may not stand beside.
std::string check_limited(const Target& target) {
    if (target.kind() != Target::Kind::address) {
        return "only an address or a network may have ports; a name has its port in the target: " +
               target.text() + ":443";
    }
    if (!target.scope().is_all()) return "the target has a port already";
    return {};
}

/// The rule at `where` ("egress[3]").
std::optional<PolicyRule> parse_rule(const json::value& item, const std::string& where,
                                     RuleError& error) {
    const auto fail = [&](bool shape, std::string message) {
        error = RuleError{shape, where + std::move(message)};
        return std::nullopt;
    };
    if (!item.is_object()) return fail(true, ": must be an object");
    const json::object& object = item.get_object();
    if (std::string unknown = unknown_member(object, {"action", "target", "ports"});
        !unknown.empty()) {
        return fail(true, ": " + unknown);
    }
    const json::value* action = json::find(object, "action");
    const json::value* target = json::find(object, "target");
    if (action && !action->is_string()) return fail(true, ".action: must be a string");
    if (target && !target->is_string()) return fail(true, ".target: must be a string");
    const std::string_view word = action ? std::string_view(action->get_string()) : "";
    const auto meant = parse_action(word);
    if (!meant) return fail(false, ".action: unsupported action " + quoted(word));
    std::vector<std::uint16_t> ports;
    if (const json::value* list = json::find(object, "ports")) {
        if (std::string wrong = read_ports(*list, ports); !wrong.empty()) {
            return fail(false, ".ports: " + wrong);
        }
        if (!target) return PolicyRule(*meant, std::nullopt, std::move(ports));
    }
    Result<Target> parsed =
        Target::parse(target ? std::string_view(target->get_string()) : std::string_view());
    if (!parsed) return fail(false, ".target: " + parsed.error().message());
    if (!ports.empty()) {
        if (std::string wrong = check_limited(*parsed); !wrong.empty()) {
            return fail(false, ".ports: " + wrong);
        }
    }
    return PolicyRule(*meant, std::move(*parsed), std::move(ports));
}

bool parse_rules(const json::array& items, std::vector<PolicyRule>& rules, RuleError& error) {
    rules.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
        auto rule = parse_rule(items[i], "egress[" + std::to_string(i) + "]", error);
        if (!rule) return false;
        rules.push_back(std::move(*rule));
    }
    return true;
}

Result<json::value> parse_document(std::string_view text) {
    if (text.size() > kMaxPolicyBytes) return invalid("must not be longer than 16 MiB");
    return json::parse(text);
}

/// The items of a body that must be an array of at least one. `what` begins each error.
Result<json::array> parse_list(std::string_view body, std::string_view what) {
    if (trim(body).empty()) return invalid("empty body");
    Result<json::value> document = parse_document(body);
    if (!document) return document.error().within(what);
    // `null` is an array without items, as Go reads it.
    if (document->is_null()) return invalid(std::string(what) + ": empty array");
    if (!document->is_array()) return invalid(std::string(what) + ": must be an array");
    if (document->get_array().empty()) return invalid(std::string(what) + ": empty array");
    return std::move(document->get_array());
}

/// The key of a target that somebody wrote, be it one or not.
std::string key_of(std::string_view text) {
    const Result<Target> target = Target::parse(text);
    return target ? target->key() : lower_case(trim(text));
}

void append_member(std::string& out, std::string_view name, std::string_view space) {
    append_json_string(out, name);
    out.append(":").append(space);
}

void append_rules(std::string& out, const Policy& policy, std::string_view before,
                  std::string_view inside, std::string_view space) {
    for (const PolicyRule& rule : policy.rules) {
        if (&rule != &policy.rules.front()) out += ',';
        out.append(before).append("{").append(inside);
        append_member(out, "action", space);
        append_json_string(out, to_string(rule.action));
        if (rule.target) {
            out.append(",").append(inside);
            append_member(out, "target", space);
            append_json_string(out, rule.target->text());
        }
        if (!rule.ports.empty()) {
            out.append(",").append(inside);
            append_member(out, "ports", space);
            for (std::size_t i = 0; i < rule.ports.size(); ++i)
                out.append(i > 0 ? "," : "[").append(std::to_string(rule.ports[i]));
            out += ']';
        }
        out.append(before).append("}");
    }
}

}  // namespace

bool is_reset(std::string_view body) {
    body = trim(body);
    if (body.empty() || body == "null") return true;
    return body.front() == '{' && body.back() == '}' && body.size() >= 2 &&
           trim(body.substr(1, body.size() - 2)).empty();
}

Result<Policy> parse_policy(std::string_view text) {
    Policy policy;
    if (is_reset(text)) return policy;
    const Result<json::value> document = parse_document(text);
    if (!document) return document.error();
    if (!document->is_object()) return invalid("a policy must be an object");
    const json::object& object = document->get_object();
    if (std::string unknown = unknown_member(object, {"defaultAction", "egress"});
        !unknown.empty()) {
        return invalid(std::move(unknown));
    }
    if (const json::value* action = json::find(object, "defaultAction")) {
        if (!action->is_string()) return invalid("defaultAction: must be a string");
        const auto meant = parse_action(action->get_string());
        if (!meant) {
            return invalid("defaultAction: unsupported action " + quoted(action->get_string()));
        }
        policy.default_action = *meant;
    }
    if (const json::value* egress = json::find(object, "egress")) {
        if (!egress->is_array()) return invalid("egress: must be an array");
        RuleError error;
        if (!parse_rules(egress->get_array(), policy.rules, error)) return invalid(error.message);
    }
    return policy;
}

Result<std::vector<PolicyRule>> parse_patch(std::string_view body) {
    const Result<json::array> items = parse_list(body, "invalid patch rules");
    if (!items) return items.error();
    std::vector<PolicyRule> rules;
    RuleError error;
    if (!parse_rules(*items, rules, error)) {
        return invalid((error.shape ? "invalid patch rules: " : "invalid merged policy: ") +
                       error.message);
    }
    return rules;
}

Result<std::vector<std::string>> parse_delete(std::string_view body) {
    const Result<json::array> items = parse_list(body, "invalid delete targets");
    if (!items) return items.error();
    std::vector<std::string> targets;
    for (std::size_t i = 0; i < items->size(); ++i) {
        const json::value& item = (*items)[i];
        if (!item.is_string()) {
            return invalid("invalid delete targets: [" + std::to_string(i) + "]: must be a string");
        }
        targets.emplace_back(item.get_string());
    }
    return targets;
}

Policy merge(const Policy& policy, const std::vector<PolicyRule>& rules) {
    Policy merged;
    merged.default_action = policy.default_action;
    std::unordered_set<std::string> keys;
    for (const PolicyRule& rule : rules) {
        if (keys.insert(rule.key()).second) merged.rules.push_back(rule);
    }
    for (const PolicyRule& rule : policy.rules) {
        if (!keys.contains(rule.key())) merged.rules.push_back(rule);
    }
    return merged;
}

Removal remove(const Policy& policy, const std::vector<std::string>& targets) {
    std::unordered_set<std::string> keys;
    for (const std::string& target : targets)
        keys.insert(key_of(target));
    Removal removal;
    removal.policy = policy;
    removal.removed = std::erase_if(
        removal.policy.rules, [&](const PolicyRule& rule) { return keys.contains(rule.name()); });
    return removal;
}

Status check_rule_count(const Policy& policy, std::size_t limit) {
    std::size_t count = 0;
    for (const PolicyRule& rule : policy.rules)
        count += rule.count();
    if (limit == 0 || count <= limit) return {};
    return Error(ErrorCode::too_large, "egress rule total count " + std::to_string(count) +
                                           " exceeds limit " + std::to_string(limit));
}

Status check_without_filter(const Policy& policy) {
    for (std::size_t i = 0; i < policy.rules.size(); ++i) {
        if (policy.rules[i].ports.empty()) continue;
        return invalid("egress[" + std::to_string(i) + "].ports: needs the mode dns+nft");
    }
    return {};
}

std::string to_json(const Policy& policy) {
    std::string out = "{\"egress\":[";
    append_rules(out, policy, "", "", "");
    out += "],\"defaultAction\":\"";
    out += to_string(policy.default_action);
    return out + "\"}";
}

std::string to_saved_json(const Policy& policy) {
    std::string out = "{\n  \"egress\": [";
    append_rules(out, policy, "\n    ", "\n      ", " ");
    out += policy.rules.empty() ? "]" : "\n  ]";
    out += ",\n  \"defaultAction\": \"";
    out += to_string(policy.default_action);
    return out + "\"\n}\n";
}

}  // namespace opensandbox::egress
