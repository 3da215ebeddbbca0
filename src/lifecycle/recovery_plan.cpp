#include "lifecycle/recovery_plan.hpp"

#include "lifecycle/transition.hpp"

#include <map>
#include <set>

namespace opensandbox::lifecycle {
namespace {

/// The row of an object that another server made.
store::SandboxRecord adopted(const runtime::Observed& object, Timestamp now) {
    store::SandboxRecord record;
    record.sandbox = object.adoption->sandbox;
    record.sandbox.id = object.id;
    record.sandbox.status = object.exit     ? exited(*object.exit, now)
                            : object.paused ? paused(now)
                                            : running(now);
    if (record.sandbox.created_at == Timestamp()) record.sandbox.created_at = now;
    record.base_image = record.sandbox.image_uri;
    record.endpoints = object.endpoints;
    record.renew_seconds = object.adoption->renew_seconds;
    return record;
}

bool is_due(const runtime::Observed& object, Timestamp now) {
    const auto& expires_at = object.adoption->sandbox.expires_at;
    return expires_at && *expires_at <= now;
}

}  // namespace

RecoveryPlan plan_recovery(const std::vector<store::SandboxRecord>& rows,
                           const std::vector<runtime::Observed>& observed, Timestamp now,
                           bool host_restarted) {
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
            plan.ended.emplace_back(id, object           ? exited(*object->exit, now)
                                        : host_restarted ? ended_with_host(now)
                                                         : lost(now));
        }
    }
    for (const auto& object : observed) {
        if (known.contains(object.id)) continue;
        if (object.adoption && !is_due(object, now)) {
            plan.adopt_new.push_back(adopted(object, now));
        } else {
            plan.orphans.push_back(object.id);
        }
    }
    return plan;
}

}  // namespace opensandbox::lifecycle
