#include "sdk/document/describe.hpp"

namespace opensandbox::sdk {

namespace {

template <class Item>
json::array list_of(const std::vector<Item>& items) {
    json::array array;
    for (const auto& item : items)
        array.emplace_back(describe(item));
    return array;
}

/// Null for a list that the server left to its defaults.
template <class Item>
json::value or_null(const std::vector<Item>& items) {
    if (items.empty()) return {};
    return json::array(items.begin(), items.end());
}

}  // namespace

json::array describe(const std::vector<NetworkRule>& rules) {
    json::array out;
    for (const auto& rule : rules) {
        json::object item{{"action", rule.action}};
        if (!rule.target.empty()) item["target"] = rule.target;
        if (!rule.ports.empty()) item["ports"] = json::array(rule.ports.begin(), rule.ports.end());
        out.emplace_back(std::move(item));
    }
    return out;
}

json::object describe(const NetworkPolicy& policy) {
    json::object out;
    out["default_action"] = policy.default_action;
    out["egress"] = describe(policy.egress);
    return out;
}

json::object describe(const CredentialInfo& info) {
    json::object out;
    out["name"] = info.name;
    out["source_type"] = info.source_type;
    out["revision"] = info.revision;
    return out;
}

json::array describe(const std::vector<CredentialInfo>& infos) {
    return list_of(infos);
}

json::object describe(const BindingInfo& info) {
    json::object out;
    out["name"] = info.name;
    out["revision"] = info.revision;
    out["match"] = nullptr;
    if (info.match) {
        json::object match;
        match["schemes"] = or_null(info.match->schemes);
        match["ports"] = or_null(info.match->ports);
        match["hosts"] = json::array(info.match->hosts.begin(), info.match->hosts.end());
        match["methods"] = or_null(info.match->methods);
        match["paths"] = or_null(info.match->paths);
        out["match"] = std::move(match);
    }
    out["auth"] = nullptr;
    if (!info.auth_type.empty()) {
        json::object auth;
        auth["type"] = info.auth_type;
        auth["name"] = info.auth_name ? json::value(*info.auth_name) : json::value();
        out["auth"] = std::move(auth);
    }
    return out;
}

json::array describe(const std::vector<BindingInfo>& infos) {
    return list_of(infos);
}

json::object describe(const VaultState& state) {
    json::object out;
    out["revision"] = state.revision;
    out["credentials"] = describe(state.credentials);
    out["bindings"] = describe(state.bindings);
    return out;
}

}  // namespace opensandbox::sdk
