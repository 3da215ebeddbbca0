#include "lifecycle/recovery_plan.hpp"

#include "lifecycle/transition.hpp"

#include <map>
#include <set>

namespace opensandbox::lifecycle {

RecoveryPlan plan_recovery(const std::vector<store::SandboxRecord>& rows,
                           const std::vector<runtime::Observed>& observed, Timestamp now) {
    using model::SandboxState;
    std::map<std::string, const runtime::Observed*> objects;
    for (const auto& object : observed)
        objects.emplace(object.id, &object);

    RecoveryPlan plan;
    std::set<std::string> known;
    for (const auto& row : rows) {
        const std::string& id = row.sandbox.id;
        known.insert(id);
        SandboxState state = row.sandbox.status.state;
        if (state == SandboxState::pending || state == SandboxState::stopping) {
            plan.remove.push_back(id);
            continue;
        }
        auto found = objects.find(id);
        const runtime::Observed* object = found == objects.end() ? nullptr : found->second;
        if (object && !object->exit) {
            plan.adopt.push_back(*object);
        } else if (model::is_alive(state)) {
            plan.ended.emplace_back(id, object ? exited(*object->exit, now) : lost(now));
        }
    }
    for (const auto& object : observed) {
        if (!known.contains(object.id)) plan.orphans.push_back(object.id);
    }
    return plan;
}

}  // namespace opensandbox::lifecycle
