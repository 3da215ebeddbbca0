#include "runtime/kubernetes/workload/pooled_sandbox.hpp"

#include "agent/session/shell_state.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/allocation.hpp"
#include "runtime/kubernetes/workload/pod_template.hpp"

#include <algorithm>

namespace opensandbox::runtime::kubernetes {
namespace {

json::array* containers_of(json::value& pod_template) {
    boost::system::error_code missing;
    json::value* list = pod_template.find_pointer("/spec/containers", missing);
    return list && list->is_array() && !list->get_array().empty() ? &list->get_array() : nullptr;
}

/// The container `sandbox`, else the first.
json::object* chosen_container(json::array& containers) {
    for (json::value& container : containers) {
        json::object* object = container.if_object();
        const json::value* name = object ? json::find(*object, "name") : nullptr;
        if (name && name->is_string() && name->get_string() == kSandboxContainer) return object;
    }
    return containers.front().if_object();
}

json::array& list_member(json::object& object, std::string_view name) {
    json::value& list = object[name];
    if (!list.is_array()) list = json::array();
    return list.get_array();
}

}  // namespace

model::Task sandbox_task(const SandboxSpec& spec) {
    std::string command = "exec " + std::string(kSharedDirectory) + "/bootstrap.sh";
    for (const std::string& word : spec.entrypoint)
        command += " " + agent::quote_for_shell(word);
    model::Task task;
    task.name = spec.id + "-0";
    task.process.emplace();
    task.process->command = {"/bin/sh", "-c", std::move(command)};
    task.process->env = spec.env;
    const auto set = [&](std::string_view name, std::string value) {
        auto& env = task.process->env;
        std::erase_if(env, [&](const auto& entry) { return entry.first == name; });
        env.emplace_back(std::string(name), std::move(value));
    };
    if (spec.hooks) set("OPENSANDBOX_LIFECYCLE", model::to_json(*spec.hooks));
    set("EXECD_INIT", "1");
    set(kAgentTokenVariable, spec.agent_token);
    set("OPENSANDBOX_ID", spec.id);
    return task;
}

json::object pooled_manifest(const SandboxSpec& spec, const std::string& pool,
                             const WorkloadMarks& marks, const std::optional<ClaimedPod>& pod) {
    json::object metadata = workload_metadata(spec, marks);
    metadata["name"] = spec.id;
    json::value& annotations = metadata["annotations"];
    if (!annotations.is_object()) annotations = json::object();
    annotations.get_object()[annotation::kImage] = spec.image;
    if (pod) {
        annotations.get_object()[annotation::kAllocated] = pods_text({pod->name});
        annotations.get_object()[annotation::kEndpoints] =
            json::serialize(json::string_array({pod->address}));
        annotations.get_object()[annotation::kEndpointUids] =
            json::serialize(json::string_array({pod->uid}));
        metadata["finalizers"] = json::string_array({std::string(kAllocationFinalizer)});
    }
    json::object process = model::write_task_process(*sandbox_task(spec).process);
    json::object of_task;
    of_task["process"] = std::move(process);
    json::object task;
    task["spec"] = std::move(of_task);
    json::object wanted{{"replicas", 1}, {"poolRef", pool}};
    wanted["taskTemplate"] = std::move(task);
    if (spec.expires_at) wanted["expireTime"] = to_rfc3339(*spec.expires_at);
    json::object manifest{{"apiVersion", kube::api_version(kBatchSandboxes)},
                          {"kind", kBatchSandboxes.kind}};
    manifest["metadata"] = std::move(metadata);
    manifest["spec"] = std::move(wanted);
    return manifest;
}

Result<json::object> complete_pool_template(json::object pod_template,
                                            const KubernetesOptions& options,
                                            const std::string& token) {
    json::value made(std::move(pod_template));
    json::array* containers = containers_of(made);
    json::object* container = containers ? chosen_container(*containers) : nullptr;
    if (!container) return invalid("template.spec.containers: must hold a container");
    if (json::find(*container, "command") || options.image.empty()) return made.get_object();
    container->insert_or_assign("command",
                                json::array{std::string(kSharedDirectory) + "/task-executor"});
    list_member(*container, "env")
        .emplace_back(json::object{{"name", model::kTaskTokenVariable}, {"value", token}});
    list_member(*container, "volumeMounts")
        .emplace_back(json::object{{"name", kAgentVolume}, {"mountPath", kSharedDirectory}});
    json::object& spec = made.get_object()["spec"].get_object();
    list_member(spec, "initContainers").emplace_back(installer_container(options));
    list_member(spec, "volumes")
        .emplace_back(json::object{{"name", kAgentVolume}, {"emptyDir", json::object()}});
    for (const auto& [name, value] :
         {std::pair<std::string_view, json::value>("automountServiceAccountToken", false),
          {"enableServiceLinks", false},
          {"restartPolicy", "Never"}}) {
        if (!spec.contains(name)) spec[name] = value;
    }
    return made.get_object();
}

std::string image_of_template(const json::value& pod_template) {
    json::value copy = pod_template;
    json::array* containers = containers_of(copy);
    json::object* container = containers ? chosen_container(*containers) : nullptr;
    if (!container) return {};
    auto image = json::get_string(*container, "image");
    return image ? image->value_or("") : std::string();
}

}  // namespace opensandbox::runtime::kubernetes
