#pragma once

#include "kube/object/metadata.hpp"
#include "runtime/kubernetes/observed/condition.hpp"

#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime::kubernetes {

/// A container as the kubelet reports it.
struct ContainerState {
    std::string name;
    std::string image;
    std::string image_id;
    std::int64_t restarts = 0;
    bool ready = false;
    bool running = false;
    std::string waiting;  ///< reason; empty when it does not wait
    bool terminated = false;
    int exit_code = 0;
    int signal = 0;
    std::string reason;  ///< of the termination
    std::string message;
    std::optional<Timestamp> started_at;
    std::optional<Timestamp> finished_at;
};

/// A pod as far as it is used here.
struct Pod {
    kube::Metadata metadata;
    std::string node;
    std::string phase;   ///< Pending, Running, Succeeded, Failed, Unknown
    std::string reason;  ///< Evicted, OutOfcpu…
    std::string message;
    std::string address;
    std::string host_address;
    std::optional<Timestamp> started_at;
    Conditions conditions;
    std::vector<ContainerState> installers;  ///< init containers, sidecars among them
    std::vector<ContainerState> containers;

    [[nodiscard]] bool is_ready() const;
    [[nodiscard]] bool is_going() const { return metadata.deletion_time.has_value(); }
    /// It ended, well or not, and does not come back.
    [[nodiscard]] bool has_ended() const { return phase == "Succeeded" || phase == "Failed"; }
};

/// The members of a pod that read_pod() reads, for a watch.
std::vector<std::string> pod_members();

/// `invalid_argument` names the member.
Result<Pod> read_pod(const json::object& object);

/// Null when the pod does not report a container of this name.
const ContainerState* find_container(const std::vector<ContainerState>& containers,
                                     std::string_view name);

}  // namespace opensandbox::runtime::kubernetes
