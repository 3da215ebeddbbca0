#include "model/network_policy.hpp"

#include "json/document.hpp"
#include "model/field_rule.hpp"

namespace opensandbox::model {

NetworkPolicy read_network_policy(const json::object& checked) {
    NetworkPolicy policy;
    policy.default_action = read_text(checked, "defaultAction");
    const json::value* rules = find_field(checked, "egress");
    if (!rules || !rules->is_array()) return policy;
    for (const json::value& item : rules->get_array()) {
        const json::object& rule = item.get_object();
        policy.egress.emplace_back(read_text(rule, "action").value_or(""),
                                   read_text(rule, "target").value_or(""));
        policy.egress.back().ports = read_integers(rule, "ports");
    }
    return policy;
}

std::string to_json(const NetworkPolicy& policy) {
    std::string out = "{";
    if (policy.default_action) {
        out += "\"defaultAction\":";
        append_json_string(out, *policy.default_action);
        out += ',';
    }
    out += "\"egress\":[";
    for (const EgressRule& rule : policy.egress) {
        if (out.back() != '[') out += ',';
        out += "{\"action\":";
        append_json_string(out, rule.action);
        if (!rule.target.empty()) {
            out += ",\"target\":";
            append_json_string(out, rule.target);
        }
        if (!rule.ports.empty()) {
            out += ",\"ports\":[";
            for (const std::int64_t port : rule.ports) {
                if (out.back() != '[') out += ',';
                out += std::to_string(port);
            }
            out += ']';
        }
        out += '}';
    }
    return out + "]}";
}

}  // namespace opensandbox::model
