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
