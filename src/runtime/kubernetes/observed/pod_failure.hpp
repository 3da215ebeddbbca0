#pragma once

#include "runtime/kubernetes/observed/pod.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace opensandbox::runtime::kubernetes {

/// What keeps a pod from running.
struct PodFailure {
    enum class Kind : std::uint8_t {
        terminal,  ///< it does not come back
        stuck,     ///< it may go by; another pod, elsewhere, may have more luck
        passing,   ///< it goes by when somebody brings what is missing
    };
    Kind kind = Kind::terminal;
    std::string reason;   ///< a word of the kubelet's: ErrImagePull, OOMKilled, Evicted…
    std::string message;  ///< a sentence
};

/// Empty while the pod runs, comes up or ended well. Init containers count; passing states of image
/// pulls whose message says that there is no such image are terminal. Pure.
std::optional<PodFailure> failure_of(const Pod& pod);

/// Why it is not placed: the scheduler's sentence; empty when it is, or was not looked at yet.
std::string why_unschedulable(const Pod& pod);

}  // namespace opensandbox::runtime::kubernetes
