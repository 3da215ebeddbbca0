#include "runtime/kubernetes/observed/pod_failure.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::runtime::kubernetes {
namespace {

using Kind = PodFailure::Kind;

struct WaitingReason {
    std::string_view reason;
    Kind kind;
};

/// What a container that waits may wait for in vain.
constexpr std::array kWaitingReasons{
    WaitingReason{"CrashLoopBackOff", Kind::terminal},
    WaitingReason{"InvalidImageName", Kind::terminal},
    WaitingReason{"ErrImageNeverPull", Kind::terminal},
    WaitingReason{"CreateContainerError", Kind::terminal},
    WaitingReason{"RunContainerError", Kind::terminal},
    WaitingReason{"ImageInspectError", Kind::terminal},
    WaitingReason{"ErrImagePull", Kind::stuck},
    WaitingReason{"ImagePullBackOff", Kind::stuck},
    WaitingReason{"RegistryUnavailable", Kind::stuck},
    WaitingReason{"CreateContainerConfigError", Kind::passing},
};

/// Why a kubelet does not take or keep a pod; elsewhere it may run.
constexpr std::array<std::string_view, 8> kNodeReasons{
    "OutOfcpu",           "OutOfmemory",     "OutOfephemeral-storage",   "Evicted",
    "NodeNotSchedulable", "KubeletNotReady", "UnexpectedAdmissionError", "NodeAffinity"};

/// Sentences of registries after which another try is in vain.
constexpr std::array<std::string_view, 6> kNoSuchImage{
    "not found",    "manifest unknown",        "repository does not exist",
    "unauthorized", "authentication required", "denied"};

bool says_no_such_image(std::string_view message) {
    return std::ranges::any_of(kNoSuchImage, [&](std::string_view sentence) {
        return message.find(sentence) != std::string_view::npos;
    });
}

std::optional<PodFailure> waiting_failure(const ContainerState& container) {
    const auto at = std::ranges::find(kWaitingReasons, container.waiting, &WaitingReason::reason);
    if (at == kWaitingReasons.end()) return std::nullopt;
    const bool in_vain = at->kind == Kind::stuck && says_no_such_image(container.message);
    return PodFailure(in_vain ? Kind::terminal : at->kind, container.waiting,
                      "container " + container.name + ": " + container.waiting +
                          (container.message.empty() ? "" : ": " + container.message));
}

std::string ending_of(const ContainerState& container) {
    std::string text = "container " + container.name;
    if (container.signal != 0) {
        text += " was ended by signal " + std::to_string(container.signal);
    } else {
        text += " ended with exit code " + std::to_string(container.exit_code);
    }
    if (!container.reason.empty() && container.reason != "Error")
        text += " (" + container.reason + ")";
    if (!container.message.empty()) text += ": " + container.message;
    return text;
}

const ContainerState* ended_badly(const std::vector<ContainerState>& containers) {
    const auto at = std::ranges::find_if(containers, [](const ContainerState& container) {
        return container.terminated && (container.exit_code != 0 || container.signal != 0);
    });
    return at == containers.end() ? nullptr : &*at;
}

PodFailure ended_failure(const Pod& pod) {
    PodFailure failure;
    if (std::ranges::find(kNodeReasons, pod.reason) != kNodeReasons.end()) {
        failure.kind = Kind::stuck;
        failure.reason = pod.reason;
        failure.message = pod.message.empty() ? pod.reason : pod.message;
        return failure;
    }
    const ContainerState* ended = ended_badly(pod.installers);
    failure.reason = "InitContainerFailed";
    if (!ended) {
        ended = ended_badly(pod.containers);
        failure.reason = "ContainerFailed";
    }
    if (ended) {
        if (ended->reason == "OOMKilled") failure.reason = ended->reason;
        failure.message = ending_of(*ended);
        return failure;
    }
    failure.reason = pod.reason.empty() ? "PodFailed" : pod.reason;
    failure.message = pod.message.empty() ? "the pod failed" : pod.message;
    return failure;
}

}  // namespace

std::optional<PodFailure> failure_of(const Pod& pod) {
    if (pod.phase == "Failed") return ended_failure(pod);
    for (const auto* containers : {&pod.installers, &pod.containers}) {
        for (const ContainerState& container : *containers) {
            if (container.waiting.empty()) continue;
            if (auto failure = waiting_failure(container)) return failure;
        }
    }
    return std::nullopt;
}

std::string why_unschedulable(const Pod& pod) {
    const Condition* scheduled = find_condition(pod.conditions, "PodScheduled");
    if (!scheduled || scheduled->status == "True") return {};
    return scheduled->reason == "Unschedulable" ? scheduled->message : std::string();
}

}  // namespace opensandbox::runtime::kubernetes
