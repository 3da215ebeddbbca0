#pragma once

#include "model/sandbox.hpp"
#include "model/snapshot.hpp"
#include "runtime/runtime.hpp"

/// The statuses that sandboxes (lifecycle 2.3) and snapshots pass through. Pure.
namespace opensandbox::lifecycle {

model::SandboxStatus starting(Timestamp at);
model::SandboxStatus running(Timestamp at);
model::SandboxStatus pausing(Timestamp at);
model::SandboxStatus paused(Timestamp at);
model::SandboxStatus resuming(Timestamp at);
model::SandboxStatus deleting(Timestamp at);
/// Code 0 without a reason of the backend's, or the reason HOST_RESTARTED: Terminated; anything
/// else: Failed.
model::SandboxStatus exited(const runtime::Exit& exit, Timestamp now);
/// The row says it lives, the backend knows nothing of it.
model::SandboxStatus lost(Timestamp at);
/// The same, and the host was restarted meanwhile.
model::SandboxStatus ended_with_host(Timestamp at);

// Snapshots (lifecycle 4).

model::SnapshotStatus snapshot_accepted(Timestamp at);
model::SnapshotStatus snapshot_ready(Timestamp at);
model::SnapshotStatus snapshot_failed(const Error& error, Timestamp at);
model::SnapshotStatus snapshot_deleting(Timestamp at);

}  // namespace opensandbox::lifecycle
