#include "lifecycle/snapshot_plan.hpp"

#include <map>
#include <set>

namespace opensandbox::lifecycle {
namespace {

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

SnapshotStatus snapshot_accepted(Timestamp at) {
    return {SnapshotState::creating, "snapshot_accepted", "Snapshot creation accepted.", at};
}

SnapshotStatus snapshot_ready(Timestamp at) {
    return {SnapshotState::ready, "snapshot_runtime_ready", "Snapshot is ready.", at};
}

SnapshotStatus snapshot_failed(const Error& error, Timestamp at) {
    bool late = error.code() == ErrorCode::timeout;
    return {SnapshotState::failed, late ? "snapshot_runtime_timeout" : "snapshot_runtime_failed",
            error.message(), at};
}

SnapshotStatus snapshot_deleting(Timestamp at) {
    return {SnapshotState::deleting, "snapshot_delete_requested", "Snapshot deletion requested.",
            at};
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
