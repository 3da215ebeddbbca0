#include "sdk/wire_egress.hpp"

#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

json::array rule_array(const std::vector<NetworkRule>& rules) {
    json::array array;
    for (const auto& rule : rules) {
        json::object item{{"action", rule.action}};
        if (!rule.target.empty()) item["target"] = rule.target;
        if (!rule.ports.empty()) item["ports"] = json::array(rule.ports.begin(), rule.ports.end());
        array.emplace_back(std::move(item));
    }
    return array;
}

Error no_objects(std::string_view name) {
    return {ErrorCode::protocol,
            "the answer breaks its format: " + std::string(name) + ": not objects"};
}

/// What `read` makes of each object of an array.
template <class Item>
Result<std::vector<Item>> items_of(const json::array& array, std::string_view name,
                                   Result<Item> (*read)(const json::object&)) {
    std::vector<Item> items;
    for (const json::value& item : array) {
        if (!item.is_object()) return no_objects(name);
        auto made = read(item.get_object());
        if (!made) return made.error().within(name);
        items.push_back(std::move(*made));
    }
    return items;
}

Result<std::vector<std::int64_t>> ports_of(const json::object& from) {
    std::vector<std::int64_t> ports;
    const json::value* list = json::find(from, "ports");
    if (!list) return ports;
    ObjectReader in(from);
    for (const json::value& port : in.array("ports")) {
        if (!port.is_int64() && !port.is_uint64()) in.fail("ports", "not whole numbers");
        if (!in.failed()) ports.push_back(port.to_number<std::int64_t>());
    }
    if (in.failed()) return in.error();
    return ports;
}

Result<NetworkRule> rule_of(const json::object& from) {
    ObjectReader in(from);
    NetworkRule rule;
    rule.action = in.string("action");
    rule.target = in.optional_string("target").value_or("");
    if (in.failed()) return in.error();
    auto ports = ports_of(from);
    if (!ports) return ports.error();
    rule.ports = std::move(*ports);
    if (rule.target.empty() && rule.ports.empty()) in.fail("target", "is missing");
    if (in.failed()) return in.error();
    return rule;
}

Result<NetworkPolicy> policy_of(const json::object& from) {
    ObjectReader in(from);
    NetworkPolicy policy;
    policy.default_action = in.optional_string("defaultAction").value_or("deny");
    if (in.failed()) return in.error();
    // Servers write null for a policy without rules.
    if (!json::find(from, "egress")) return policy;
    const json::array& rules = in.array("egress");
    if (in.failed()) return in.error();
    auto read = items_of<NetworkRule>(rules, "egress", rule_of);
    if (!read) return read.error();
    policy.egress = std::move(*read);
    return policy;
}

Result<CredentialInfo> credential_of(const json::object& from) {
    ObjectReader in(from);
    CredentialInfo info;
    info.name = in.string("name");
    info.source_type = in.string("sourceType");
    info.revision = in.integer("revision");
    if (in.failed()) return in.error();
    return info;
}

Result<CredentialMatch> match_of(const json::object& from) {
    ObjectReader in(from);
    CredentialMatch match;
    match.schemes = in.strings("schemes");
    match.hosts = in.strings("hosts");
    match.methods = in.strings("methods");
    match.paths = in.strings("paths");
    if (in.failed()) return in.error();
    auto ports = ports_of(from);
    if (!ports) return ports.error();
    match.ports = std::move(*ports);
    return match;
}

Result<BindingInfo> binding_of(const json::object& from) {
    ObjectReader in(from);
    BindingInfo info;
    info.name = in.string("name");
    info.revision = in.integer("revision");
    const json::object* match = in.optional_object("match");
    const json::object* auth = in.optional_object("auth");
    if (in.failed()) return in.error();
    if (match) {
        auto read = match_of(*match);
        if (!read) return read.error().within("match");
        info.match = std::move(*read);
    }
    if (auth) {
        ObjectReader reader(*auth);
        info.auth_type = reader.string("type");
        info.auth_name = reader.optional_string("name");
        if (reader.failed()) return reader.error().within("auth");
    }
    return info;
}

/// The array `name` of an answer.
template <class Item>
Result<std::vector<Item>> list_in(std::string_view body, std::string_view name,
                                  Result<Item> (*read)(const json::object&)) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    const json::array& array = in.array(name);
    if (in.failed()) return in.error();
    return items_of<Item>(array, name, read);
}

}  // namespace

std::string encode_rules(const std::vector<NetworkRule>& rules) {
    return json::serialize(rule_array(rules));
}

std::string encode_targets(const std::vector<std::string>& targets) {
    return json::serialize(json::array(targets.begin(), targets.end()));
}

std::string encode_policy(const NetworkPolicy& policy) {
    json::object body;
    if (!policy.default_action.empty()) body["defaultAction"] = policy.default_action;
    body["egress"] = rule_array(policy.egress);
    return json::serialize(body);
}

Result<EgressStatus> decode_egress_status(std::string_view body, bool with_policy) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    EgressStatus status;
    status.mode = in.optional_string("mode").value_or("");
    status.enforcement_mode = in.optional_string("enforcementMode").value_or("");
    status.reason = in.optional_string("reason").value_or("");
    const json::object* policy = in.optional_object("policy");
    if (!policy && with_policy) in.fail("policy", "is missing");
    if (in.failed()) return in.error();
    if (!policy) return status;
    auto read = policy_of(*policy);
    if (!read) return read.error().within("policy");
    status.policy = std::move(*read);
    return status;
}

Result<std::string> check_vault_document(std::string_view text) {
    auto document = json::parse(text);
    if (document && document->is_object()) return json::serialize(*document);
    // What is wrong is told without quoting: the text holds secrets.
    return Error(ErrorCode::invalid_argument, "the vault's document must be a JSON object");
}

Result<VaultState> decode_vault(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    VaultState state;
    state.revision = in.integer("revision");
    if (in.failed()) return in.error();
    auto credentials = decode_credentials(body);
    if (!credentials) return credentials.error();
    auto bindings = decode_bindings(body);
    if (!bindings) return bindings.error();
    state.credentials = std::move(*credentials);
    state.bindings = std::move(*bindings);
    return state;
}

Result<std::vector<CredentialInfo>> decode_credentials(std::string_view body) {
    return list_in<CredentialInfo>(body, "credentials", credential_of);
}

Result<CredentialInfo> decode_credential(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    return credential_of(*document);
}

Result<std::vector<BindingInfo>> decode_bindings(std::string_view body) {
    return list_in<BindingInfo>(body, "bindings", binding_of);
}

Result<BindingInfo> decode_binding(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    return binding_of(*document);
}

}  // namespace opensandbox::sdk::wire
