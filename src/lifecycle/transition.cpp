#include "lifecycle/transition.hpp"

namespace opensandbox::lifecycle {

using model::SandboxState;
using model::SandboxStatus;
using model::SnapshotState;
using model::SnapshotStatus;

namespace {

constexpr const char* kHostRestarted = "HOST_RESTARTED";

}  // namespace

SandboxStatus starting(Timestamp at) {
    return {SandboxState::pending, "CONTAINER_STARTING", "Sandbox is starting.", at};
}

SandboxStatus running(Timestamp at) {
    return {SandboxState::running, "CONTAINER_RUNNING", "Sandbox is running.", at};
}

SandboxStatus pausing(Timestamp at) {
    return {SandboxState::pausing, "PAUSING", "Sandbox is being paused.", at};
}

SandboxStatus paused(Timestamp at) {
    return {SandboxState::paused, "CONTAINER_PAUSED", "Sandbox is paused.", at};
}

SandboxStatus resuming(Timestamp at) {
    return {SandboxState::resuming, "RESUMING", "Sandbox is being resumed.", at};
}

SandboxStatus deleting(Timestamp at) {
    return {SandboxState::stopping, "DELETING", "Sandbox is being removed.", at};
}

SandboxStatus exited(const runtime::Exit& exit, Timestamp now) {
    Timestamp at = exit.at == Timestamp() ? now : exit.at;
    if (exit.code == 0 && exit.signal == 0 && exit.reason.empty()) {
        return {SandboxState::terminated, "CONTAINER_EXITED", "Sandbox exited successfully.", at};
    }
    if (exit.reason == kHostRestarted) return ended_with_host(at);
    std::string reason = exit.reason.empty() ? "CONTAINER_EXITED_ERROR" : exit.reason;
    std::string message = exit.message;
    if (message.empty()) {
        message = exit.signal != 0
                      ? "Sandbox was killed by signal " + std::to_string(exit.signal) + "."
                      : "Sandbox exited with code " + std::to_string(exit.code) + ".";
    }
    return {SandboxState::failed, std::move(reason), std::move(message), at};
}

SandboxStatus lost(Timestamp at) {
    return {SandboxState::failed, "SANDBOX_LOST",
            "Sandbox was gone when the server started; the host may have been restarted.", at};
}

SandboxStatus ended_with_host(Timestamp at) {
    return {SandboxState::terminated, kHostRestarted,
            "The host was restarted, and the sandbox ended with it.", at};
}

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

}  // namespace opensandbox::lifecycle
