#pragma once

#include "runtime/runtime.hpp"
#include "store/sandbox_store.hpp"
#include "store/snapshot_store.hpp"

#include <optional>
#include <string>
#include <vector>

/// What to do at start about the difference between what should exist (the store) and what does
/// (the runtime). Pure.
namespace opensandbox::lifecycle {

/// For sandboxes.
struct RecoveryPlan {
    /// Live, with the address where their agents listen now.
    std::vector<runtime::Observed> adopt;
    /// Rows that get a new status: ended or lost while no server ran.
    std::vector<std::pair<std::string, model::SandboxStatus>> ended;
    /// Rows whose creation or removal was cut short: removed, with what the runtime may have.
    std::vector<std::string> remove;
    /// Objects without a row that another server left to us: they get one.
    std::vector<store::SandboxRecord> adopt_new;
    /// Objects of the runtime without a row, and those left to us that are due.
    std::vector<std::string> orphans;
};

/// `host_restarted`: since the last server ran, so that nothing could live on.
RecoveryPlan plan_recovery(const std::vector<store::SandboxRecord>& rows,
                           const std::vector<runtime::Observed>& observed, Timestamp now,
                           bool host_restarted = false);

/// For snapshots (lifecycle 4).
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
