#include "egress/guard/policy_log.hpp"

#include "base/json_string.hpp"
#include "base/log.hpp"
#include "egress/policy/policy_difference.hpp"

namespace opensandbox::egress {

namespace {

/// As the contract tells of rules in logs; the first of many.
std::string rules_json(const std::vector<const Rule*>& rules) {
    constexpr std::size_t kShown = 100;
    std::string json = "[";
    for (std::size_t i = 0; i < rules.size() && i < kShown; ++i) {
        json += std::string(i > 0 ? "," : "") + "{\"action\":";
        append_json_string(json, to_string(rules[i]->action));
        json += ",\"target\":";
        append_json_string(json, rules[i]->target.text());
        json += '}';
    }
    return json + "]";
}

}  // namespace

void log_policy_loaded(const InitialPolicy& initial, const std::string& sandbox_id) {
    for (const std::string& warning : initial.warnings)
        log::warn(warning, {{"sandbox_id", sandbox_id}});
    log::info("egress policy loaded", {{"opensandbox.event", "egress.loaded"},
                                       {"source", initial.source},
                                       {"egress.default", to_string(initial.policy.default_action)},
                                       {"rules", initial.policy.rules.size()},
                                       {"sandbox_id", sandbox_id}});
}

void log_policy_change(const EffectivePolicy& before, const EffectivePolicy& now,
                       const std::string& sandbox_id) {
    const PolicyDifference difference(before, now);
    log::info("egress policy changed",
              {{"opensandbox.event", "egress.updated"},
               {"egress.default", to_string(now.default_action())},
               log::Value::json("rules", rules_json(difference.added())),
               {"rules.added", difference.added().size()},
               log::Value::json("removed", rules_json(difference.removed())),
               {"rules.removed", difference.removed().size()},
               {"sandbox_id", sandbox_id}});
}

}  // namespace opensandbox::egress
