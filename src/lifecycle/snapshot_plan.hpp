#pragma once

#include "runtime/runtime.hpp"
#include "store/snapshot_store.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The statuses of snapshots, and what to do at start about the difference between the rows and
/// what the runtime has (lifecycle 4). Pure.
namespace opensandbox::lifecycle {

model::SnapshotStatus snapshot_accepted(Timestamp at);
model::SnapshotStatus snapshot_ready(Timestamp at);
model::SnapshotStatus snapshot_failed(const Error& error, Timestamp at);
model::SnapshotStatus snapshot_deleting(Timestamp at);

struct SnapshotPlan {
    /// Rows with a new status, and the reference where there is one.
    std::vector<store::SnapshotRecord> changed;
    /// Rows whose deletion was cut short.
    std::vector<std::string> remove;
    /// What the runtime calls its own and no row knows.
    std::vector<runtime::SnapshotReference> orphans;
};

/// `existing` is empty when the runtime could not say.
SnapshotPlan plan_snapshots(const std::vector<store::SnapshotRecord>& rows,
                            const std::optional<std::vector<runtime::SnapshotReference>>& existing,
                            Timestamp now);

}  // namespace opensandbox::lifecycle
