#include "egress/policy/policy_json.hpp"

#include "base/json_string.hpp"
#include "json/document.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace opensandbox::egress {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

std::string_view trim(std::string_view text) {
    const auto from = text.find_first_not_of(kSpace);
    if (from == text.npos) return {};
    return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
}

Error invalid(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

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

/// The rule at `where` ("egress[3]").
std::optional<Rule> parse_rule(const json::value& item, const std::string& where,
                               RuleError& error) {
    const auto fail = [&](bool shape, std::string message) {
        error = RuleError{shape, where + std::move(message)};
        return std::nullopt;
    };
    if (!item.is_object()) return fail(true, ": must be an object");
    const json::object& object = item.get_object();
    const json::value* action = json::find(object, "action");
    const json::value* target = json::find(object, "target");
    if (action && !action->is_string()) return fail(true, ".action: must be a string");
    if (target && !target->is_string()) return fail(true, ".target: must be a string");
    const std::string_view word = action ? std::string_view(action->get_string()) : "";
    const auto meant = parse_action(word);
    if (!meant) return fail(false, ".action: unsupported action " + quoted(word));
    Result<Target> parsed =
        Target::parse(target ? std::string_view(target->get_string()) : std::string_view());
    if (!parsed) return fail(false, ".target: " + parsed.error().message());
    return Rule(*meant, std::move(*parsed));
}

bool parse_rules(const json::array& items, std::vector<Rule>& rules, RuleError& error) {
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

void append_rules(std::string& out, const Policy& policy, std::string_view before,
                  std::string_view inside, std::string_view space) {
    for (const Rule& rule : policy.rules) {
        if (&rule != &policy.rules.front()) out += ',';
        out.append(before).append("{");
        out.append(inside).append("\"action\":").append(space);
        append_json_string(out, to_string(rule.action));
        out.append(",").append(inside).append("\"target\":").append(space);
        append_json_string(out, rule.target.text());
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

Result<std::vector<Rule>> parse_patch(std::string_view body) {
    const Result<json::array> items = parse_list(body, "invalid patch rules");
    if (!items) return items.error();
    std::vector<Rule> rules;
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

Policy merge(const Policy& policy, const std::vector<Rule>& rules) {
    Policy merged;
    merged.default_action = policy.default_action;
    std::unordered_set<std::string> keys;
    for (const Rule& rule : rules) {
        if (keys.insert(rule.target.key()).second) merged.rules.push_back(rule);
    }
    for (const Rule& rule : policy.rules) {
        if (!keys.contains(rule.target.key())) merged.rules.push_back(rule);
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
        removal.policy.rules, [&](const Rule& rule) { return keys.contains(rule.target.key()); });
    return removal;
}

Status check_rule_count(const Policy& policy, std::size_t limit) {
    if (limit == 0 || policy.rules.size() <= limit) return {};
    return Error(ErrorCode::too_large, "egress rule total count " +
                                           std::to_string(policy.rules.size()) + " exceeds limit " +
                                           std::to_string(limit));
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
