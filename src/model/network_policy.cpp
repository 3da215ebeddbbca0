#include "model/network_policy.hpp"

namespace opensandbox::model {

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
        out += ",\"target\":";
        append_json_string(out, rule.target);
        out += '}';
    }
    return out + "]}";
}

}  // namespace opensandbox::model
