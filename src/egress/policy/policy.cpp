#include "egress/policy/policy.hpp"

namespace opensandbox::egress {

std::string_view to_string(Action action) {
    return action == Action::allow ? "allow" : "deny";
}

std::string_view mode_of(const Policy& policy) {
    if (!policy.rules.empty()) return "enforcing";
    return policy.default_action == Action::allow ? "allow_all" : "deny_all";
}

}  // namespace opensandbox::egress
