#pragma once

#include "model/sandbox.hpp"
#include "runtime/runtime.hpp"

/// The statuses that sandboxes pass through (lifecycle 2.3). Pure.
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

}  // namespace opensandbox::lifecycle
