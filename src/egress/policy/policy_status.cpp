#include "egress/policy/policy_status.hpp"

#include "base/json_string.hpp"
#include "egress/policy/policy_json.hpp"

namespace opensandbox::egress {

PolicyStatus status_of(const Policy& policy, std::string_view enforcement_mode) {
    PolicyStatus status;
    status.mode = mode_of(policy);
    status.enforcement_mode = enforcement_mode;
    return status;
}

std::string to_json(const PolicyStatus& status) {
    std::string out = "{\"status\":\"ok\"";
    const auto member = [&out](std::string_view name, std::string_view value) {
        if (value.empty()) return;
        out.append(",\"").append(name).append("\":");
        append_json_string(out, value);
    };
    member("mode", status.mode);
    member("enforcementMode", status.enforcement_mode);
    member("reason", status.reason);
    if (status.policy) out += ",\"policy\":" + to_json(*status.policy);
    return out + "}\n";
}

}  // namespace opensandbox::egress
