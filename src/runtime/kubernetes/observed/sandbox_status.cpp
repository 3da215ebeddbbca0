#include "runtime/kubernetes/observed/sandbox_status.hpp"

#include "runtime/kubernetes/observed/pod_failure.hpp"

#include <algorithm>

namespace opensandbox::runtime::kubernetes {
namespace {

using model::SandboxState;
using model::SandboxStatus;

Timestamp created(const BatchSandbox& batch) {
    return batch.metadata.creation_time.value_or(Timestamp());
}

/// When a condition came to hold; else when the object was made.
Timestamp since(const BatchSandbox& batch, std::string_view type) {
    const Condition* found = find_condition(batch.status.conditions, type);
    return found && found->last_transition ? *found->last_transition : created(batch);
}

Timestamp since_scheduled(const Pod& pod, Timestamp otherwise) {
    const Condition* scheduled = find_condition(pod.conditions, "PodScheduled");
    return scheduled && scheduled->last_transition ? *scheduled->last_transition : otherwise;
}

SandboxStatus failed(const BatchSandbox& batch) {
    for (const std::string_view type :
         {condition::kPodFailed, condition::kResumeFailed, condition::kPauseFailed}) {
        const Condition* found = find_condition(batch.status.conditions, type);
        if (!found) continue;
        return {SandboxState::failed, found->reason.empty() ? "POD_FAILED" : found->reason,
                found->message, since(batch, type)};
    }
    return {SandboxState::failed, "POD_FAILED", "The sandbox's pod failed.", created(batch)};
}

/// By the pod alone, where it says more than the controller yet knows.
std::optional<SandboxStatus> by_pod(const BatchSandbox& batch, const Pod& pod, bool answered) {
    if (pod.phase == "Succeeded") {
        Timestamp at = created(batch);
        for (const ContainerState& container : pod.containers)
            at = std::max(at, container.finished_at.value_or(at));
        return SandboxStatus(SandboxState::terminated, "POD_SUCCEEDED",
                             "Sandbox exited successfully.", at);
    }
    if (const auto failure = failure_of(pod)) {
        if (failure->kind == PodFailure::Kind::terminal) {
            return SandboxStatus(SandboxState::failed, failure->reason, failure->message,
                                 since(batch, condition::kPodFailed));
        }
        return SandboxStatus(SandboxState::pending, failure->reason, failure->message,
                             since_scheduled(pod, created(batch)));
    }
    if (answered && !pod.is_going()) {
        const Condition* ready = find_condition(pod.conditions, "Ready");
        const bool known = ready && ready->status == "True" && ready->last_transition;
        return SandboxStatus(SandboxState::running, "POD_READY_WITH_IP", "Sandbox is running.",
                             known ? *ready->last_transition : created(batch));
    }
    return std::nullopt;
}

SandboxStatus pending(const BatchSandbox& batch, const Pod* pod) {
    const Timestamp at = created(batch);
    if (const Condition* full =
            find_condition(batch.status.conditions, condition::kPoolAllocationPending)) {
        return {SandboxState::pending, "POOL_CAPACITY_EXHAUSTED", full->message,
                since(batch, condition::kPoolAllocationPending)};
    }
    const Condition* progress = find_condition(batch.status.conditions, condition::kProgressing);
    if (!pod && progress && progress->reason == "FailedCreate") {
        return {SandboxState::pending, "POD_CREATE_FAILED", progress->message,
                since(batch, condition::kProgressing)};
    }
    if (!pod) {
        return {SandboxState::pending, "BATCHSANDBOX_PENDING", "Sandbox is waiting for its pod.",
                at};
    }
    if (const std::string why = why_unschedulable(*pod); !why.empty())
        return {SandboxState::pending, "POD_UNSCHEDULABLE", why, since_scheduled(*pod, at)};
    if (!pod->address.empty()) {
        return {SandboxState::pending, "IP_ASSIGNED", "The pod has its address.",
                since_scheduled(*pod, at)};
    }
    if (!pod->node.empty()) {
        return {SandboxState::pending, "POD_SCHEDULED", "The pod is on its node.",
                since_scheduled(*pod, at)};
    }
    return {SandboxState::pending, "BATCHSANDBOX_PENDING", "The pod is waiting for a node.", at};
}

}  // namespace

SandboxStatus sandbox_status(const BatchSandbox& batch, const Pod* pod, bool answered) {
    if (batch.metadata.deletion_time) {
        return {SandboxState::stopping, "DELETING", "Sandbox is being removed.",
                *batch.metadata.deletion_time};
    }
    const std::string& now = batch.status.phase;
    if (now == phase::kPausing) {
        return {SandboxState::pausing, "PAUSING", "Sandbox is being paused.",
                since(batch, condition::kProgressing)};
    }
    if (now == phase::kPaused) {
        return {SandboxState::paused, "PAUSED", "Sandbox is paused.",
                since(batch, condition::kPaused)};
    }
    if (now == phase::kResuming) {
        return {SandboxState::resuming, "RESUMING", "Sandbox is being resumed.",
                since(batch, condition::kProgressing)};
    }
    if (now == phase::kFailed) return failed(batch);
    if (batch.status.counters.task_failed > 0) {
        return {SandboxState::failed, "TASK_FAILED", "The sandbox's task failed.",
                since(batch, condition::kReady)};
    }
    if (pod) {
        if (auto status = by_pod(batch, *pod, answered)) return *status;
    }
    if (now == phase::kSucceed) {
        return {SandboxState::running, "POD_READY_WITH_IP", "Sandbox is running.",
                since(batch, condition::kReady)};
    }
    return pending(batch, pod);
}

}  // namespace opensandbox::runtime::kubernetes
