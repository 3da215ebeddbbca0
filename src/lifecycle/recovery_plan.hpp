#pragma once

#include "runtime/runtime.hpp"
#include "store/sandbox_store.hpp"

#include <optional>
#include <string>
#include <vector>

/// What to do at start about the difference between what should exist (the store) and what does
/// (the runtime). Pure.
namespace opensandbox::lifecycle {

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

}  // namespace opensandbox::lifecycle
