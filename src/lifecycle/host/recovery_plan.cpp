#include "lifecycle/host/recovery_plan.hpp"

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

using model::SnapshotState;
using model::SnapshotStatus;

constexpr std::string_view kMissing = "snapshot_recovery_missing_image";
constexpr std::string_view kLost = "snapshot_runtime_missing_image";
constexpr std::string_view kUnknown = "snapshot_recovery_inspect_failed";

/// Failed only because the runtime did not show it then.
bool may_come_back(const SnapshotStatus& status) {
    return status.state == SnapshotState::failed &&
           (status.reason == kLost || status.reason == kUnknown || status.reason == kMissing);
}

/// The status after recovery; the same as before when nothing is known against it.
SnapshotStatus settle(const SnapshotStatus& before, bool known, bool exists, Timestamp now) {
    bool open = before.state == SnapshotState::creating || may_come_back(before);
    if (open && known && exists) {
        return {SnapshotState::ready, "snapshot_recovery_ready",
                "Snapshot was found whole after the server started.", now};
    }
    if (before.state == SnapshotState::creating && known) {
        return {SnapshotState::failed, std::string(kMissing),
                "The server ended before the snapshot was taken.", now};
    }
    if (before.state == SnapshotState::creating) {
        return {SnapshotState::failed, std::string(kUnknown),
                "The runtime could not be asked for the snapshot when the server started.", now};
    }
    if (before.state == SnapshotState::ready && known && !exists) {
        return {SnapshotState::failed, std::string(kLost),
                "The snapshot was gone when the server started.", now};
    }
    return before;
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

SnapshotPlan plan_snapshots(const std::vector<store::SnapshotRecord>& rows,
                            const std::optional<std::vector<runtime::SnapshotReference>>& existing,
                            Timestamp now) {
    std::map<std::string, const runtime::SnapshotReference*> objects;
    if (existing) {
        for (const auto& object : *existing)
            objects.emplace(object.id, &object);
    }
    SnapshotPlan plan;
    std::set<std::string> known;
    for (const auto& row : rows) {
        known.insert(row.snapshot.id);
        if (row.snapshot.status.state == SnapshotState::deleting) {
            plan.remove.push_back(row.snapshot.id);
            continue;
        }
        auto object = objects.find(row.snapshot.id);
        bool exists = object != objects.end();
        auto status = settle(row.snapshot.status, existing.has_value(), exists, now);
        if (status == row.snapshot.status) continue;
        store::SnapshotRecord changed = row;
        changed.snapshot.status = std::move(status);
        if (exists) changed.reference = object->second->data;
        plan.changed.push_back(std::move(changed));
    }
    for (const auto& [id, object] : objects) {
        if (object->owned && !known.contains(id)) plan.orphans.push_back(*object);
    }
    return plan;
}

}  // namespace opensandbox::lifecycle
