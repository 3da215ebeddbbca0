#include "runtime/kubernetes/observed/condition.hpp"

#include "json/fields.hpp"

#include <algorithm>

namespace opensandbox::runtime::kubernetes {
namespace {

constexpr auto kConditionMembers = [](auto& walker, auto& condition) {
    walker.put("type", condition.type);
    walker.put("status", condition.status);
    walker.put(json::Field("reason").may_lack(), condition.reason);
    walker.put(json::Field("message").may_lack(), condition.message);
    walker.put("lastTransitionTime", condition.last_transition);
};

}  // namespace

Result<Conditions> read_conditions(const json::object& status) {
    Conditions conditions;
    const json::value* list = json::find(status, "conditions");
    if (!list) return conditions;
    if (!list->is_array()) return invalid("conditions: must be a list");
    for (const json::value& entry : list->get_array()) {
        if (!entry.is_object()) return invalid("conditions: must be a list of objects");
        auto condition = json::read_fields<Condition>(entry.get_object(), kConditionMembers);
        if (!condition) return condition.error().within("conditions");
        conditions.push_back(std::move(*condition));
    }
    return conditions;
}

json::array write_conditions(const Conditions& conditions) {
    json::array list;
    for (const Condition& condition : conditions) {
        json::object entry{{"type", condition.type}, {"status", condition.status}};
        if (!condition.reason.empty()) entry["reason"] = condition.reason;
        if (!condition.message.empty()) entry["message"] = condition.message;
        if (condition.last_transition) {
            // The API server keeps seconds.
            entry["lastTransitionTime"] =
                to_rfc3339(std::chrono::floor<std::chrono::seconds>(*condition.last_transition));
        }
        list.emplace_back(std::move(entry));
    }
    return list;
}

const Condition* find_condition(const Conditions& conditions, std::string_view type) {
    const auto at = std::ranges::find(conditions, type, &Condition::type);
    return at == conditions.end() ? nullptr : &*at;
}

}  // namespace opensandbox::runtime::kubernetes
