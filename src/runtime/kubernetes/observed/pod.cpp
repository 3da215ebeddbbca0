#include "runtime/kubernetes/observed/pod.hpp"

#include "json/fields.hpp"

#include <algorithm>

namespace opensandbox::runtime::kubernetes {
namespace {

struct Waiting {
    std::string reason;
    std::string message;
};
constexpr auto kWaitingMembers = [](auto& walker, auto& state) {
    walker.put(json::Field("reason").may_lack(), state.reason);
    walker.put(json::Field("message").may_lack(), state.message);
};

struct Running {
    std::optional<Timestamp> started_at;
};
constexpr auto kRunningMembers = [](auto& walker, auto& state) {
    walker.put("startedAt", state.started_at);
};

struct Terminated {
    std::int64_t exit_code = 0;
    std::int64_t signal = 0;
    std::string reason;
    std::string message;
    std::optional<Timestamp> started_at;
    std::optional<Timestamp> finished_at;
};
constexpr auto kTerminatedMembers = [](auto& walker, auto& state) {
    walker.put(json::Field("exitCode").may_lack(), state.exit_code);
    walker.put(json::Field("signal").may_lack(), state.signal);
    walker.put(json::Field("reason").may_lack(), state.reason);
    walker.put(json::Field("message").may_lack(), state.message);
    walker.put("startedAt", state.started_at);
    walker.put("finishedAt", state.finished_at);
};

constexpr auto kContainerMembers = [](auto& walker, auto& container) {
    walker.put("name", container.name);
    walker.put(json::Field("image").may_lack(), container.image);
    walker.put(json::Field("imageID").may_lack(), container.image_id);
    walker.put(json::Field("restartCount").may_lack(), container.restarts);
    walker.put(json::Field("ready").may_lack(), container.ready);
};

struct ReportedStatus {
    std::string phase;
    std::string reason;
    std::string message;
    std::string address;
    std::string host_address;
    std::optional<Timestamp> started_at;
};
constexpr auto kReportedMembers = [](auto& walker, auto& status) {
    walker.put(json::Field("phase").may_lack(), status.phase);
    walker.put(json::Field("reason").may_lack(), status.reason);
    walker.put(json::Field("message").may_lack(), status.message);
    walker.put(json::Field("podIP").may_lack(), status.address);
    walker.put(json::Field("hostIP").may_lack(), status.host_address);
    walker.put("startTime", status.started_at);
};

Result<const json::object*> member_object(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    if (!member) return static_cast<const json::object*>(nullptr);
    if (!member->is_object()) return invalid(std::string(name) + ": must be an object");
    return member->if_object();
}

Status read_state(const json::object& from, ContainerState& container) {
    auto waits = member_object(from, "waiting");
    auto runs = member_object(from, "running");
    auto ended = member_object(from, "terminated");
    if (!waits || !runs || !ended) return invalid("state: must be an object of objects");
    if (*waits) {
        auto read = json::read_fields<Waiting>(**waits, kWaitingMembers);
        if (!read) return read.error().within("waiting");
        container.waiting = read->reason.empty() ? "Waiting" : read->reason;
        container.message = read->message;
    }
    if (*runs) {
        auto read = json::read_fields<Running>(**runs, kRunningMembers);
        if (!read) return read.error().within("running");
        container.running = true;
        container.started_at = read->started_at;
    }
    if (*ended) {
        auto read = json::read_fields<Terminated>(**ended, kTerminatedMembers);
        if (!read) return read.error().within("terminated");
        container.terminated = true;
        container.exit_code = static_cast<int>(read->exit_code);
        container.signal = static_cast<int>(read->signal);
        container.reason = read->reason;
        container.message = read->message;
        container.started_at = read->started_at;
        container.finished_at = read->finished_at;
    }
    return {};
}

Result<std::vector<ContainerState>> read_containers(const json::object& status,
                                                    std::string_view name) {
    std::vector<ContainerState> containers;
    const json::value* list = json::find(status, name);
    if (!list) return containers;
    if (!list->is_array()) return invalid(std::string(name) + ": must be a list");
    for (const json::value& entry : list->get_array()) {
        if (!entry.is_object()) return invalid(std::string(name) + ": must be a list of objects");
        auto container = json::read_fields<ContainerState>(entry.get_object(), kContainerMembers);
        if (!container) return container.error().within(name);
        auto state = member_object(entry.get_object(), "state");
        if (!state) return state.error().within(name);
        if (*state) {
            if (auto read = read_state(**state, *container); !read)
                return read.error().within(name);
        }
        containers.push_back(std::move(*container));
    }
    return containers;
}

Status read_reported(const json::object& status, Pod& pod) {
    auto read = json::read_fields<ReportedStatus>(status, kReportedMembers);
    if (!read) return read.error();
    pod.phase = std::move(read->phase);
    pod.reason = std::move(read->reason);
    pod.message = std::move(read->message);
    pod.address = std::move(read->address);
    pod.host_address = std::move(read->host_address);
    pod.started_at = read->started_at;
    auto conditions = read_conditions(status);
    auto installers = read_containers(status, "initContainerStatuses");
    auto containers = read_containers(status, "containerStatuses");
    if (!conditions) return conditions.error();
    if (!installers) return installers.error();
    if (!containers) return containers.error();
    pod.conditions = std::move(*conditions);
    pod.installers = std::move(*installers);
    pod.containers = std::move(*containers);
    return {};
}

}  // namespace

bool Pod::is_ready() const {
    const Condition* ready = find_condition(conditions, "Ready");
    return phase == "Running" && !is_going() && ready && ready->status == "True";
}

std::vector<std::string> pod_members() {
    return {"spec.nodeName",           "status.phase",      "status.reason",
            "status.message",          "status.podIP",      "status.hostIP",
            "status.startTime",        "status.conditions", "status.initContainerStatuses",
            "status.containerStatuses"};
}

Result<Pod> read_pod(const json::object& object) {
    auto metadata = kube::read_metadata(object);
    if (!metadata) return metadata.error();
    Pod pod;
    pod.metadata = std::move(*metadata);
    auto spec = member_object(object, "spec");
    auto status = member_object(object, "status");
    if (!spec) return spec.error();
    if (!status) return status.error();
    if (*spec) {
        auto node = json::get_string(**spec, "nodeName");
        if (!node) return node.error().within("spec");
        pod.node = node->value_or("");
    }
    if (*status) {
        if (auto read = read_reported(**status, pod); !read) return read.error().within("status");
    }
    return pod;
}

const ContainerState* find_container(const std::vector<ContainerState>& containers,
                                     std::string_view name) {
    const auto at = std::ranges::find(containers, name, &ContainerState::name);
    return at == containers.end() ? nullptr : &*at;
}

}  // namespace opensandbox::runtime::kubernetes
