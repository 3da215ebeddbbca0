#include "lifecycle/cluster/cluster_record.hpp"

#include "model/create_request.hpp"
#include "model/metadata.hpp"
#include "model/resource_quantity.hpp"
#include "model/task.hpp"
#include "runtime/kubernetes/expansion.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/sandbox_status.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;
namespace annotation = kubernetes::annotation;
namespace label = kubernetes::label;

using kubernetes::BatchSandbox;

constexpr std::string_view kShownExtension = "opensandbox.extensions.";
constexpr double kMillicores = 1000;

/// Null when some member on the way is not there.
const json::value* at_path(const json::value& from, std::initializer_list<std::string_view> path) {
    const json::value* here = &from;
    for (const std::string_view name : path) {
        const json::object* object = here ? here->if_object() : nullptr;
        here = object ? json::find(*object, name) : nullptr;
    }
    return here;
}

std::string text_at(const json::value& from, std::initializer_list<std::string_view> path) {
    const json::value* found = at_path(from, path);
    return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

/// The container that the API speaks of: `sandbox`, else the first. Null without any.
const json::value* sandbox_container(const json::value& pod_template) {
    const json::value* list = at_path(pod_template, {"spec", "containers"});
    if (!list || !list->is_array() || list->get_array().empty()) return nullptr;
    for (const json::value& container : list->get_array()) {
        if (text_at(container, {"name"}) == kubernetes::kSandboxContainer) return &container;
    }
    return &list->get_array().front();
}

std::string variable_of(const json::value& container, std::string_view name) {
    const json::value* env = at_path(container, {"env"});
    if (!env || !env->is_array()) return {};
    for (const json::value& entry : env->get_array()) {
        if (text_at(entry, {"name"}) == name)
            return kubernetes::expanded(text_at(entry, {"value"}));
    }
    return {};
}

/// Without the program that starts the agent before it.
std::vector<std::string> entrypoint_of(const json::value& container) {
    std::vector<std::string> words;
    const json::value* command = at_path(container, {"command"});
    if (!command || !command->is_array()) return words;
    for (const json::value& word : command->get_array()) {
        if (word.is_string()) words.push_back(kubernetes::expanded(word.get_string()));
    }
    if (!words.empty() && words.front().ends_with("/bootstrap.sh")) words.erase(words.begin());
    return words;
}

std::optional<model::Platform> platform_of(const json::value& pod_template) {
    model::Platform platform;
    platform.os = text_at(pod_template, {"spec", "nodeSelector", "kubernetes.io/os"});
    platform.arch = text_at(pod_template, {"spec", "nodeSelector", "kubernetes.io/arch"});
    if (platform.os.empty() || platform.arch.empty()) return std::nullopt;
    return platform;
}

void read_container(const json::value& container, store::SandboxRecord& record) {
    model::Sandbox& sandbox = record.sandbox;
    sandbox.image_uri = text_at(container, {"image"});
    record.base_image = sandbox.image_uri;
    sandbox.entrypoint = entrypoint_of(container);
    record.agent_token = variable_of(container, kubernetes::kAgentTokenVariable);
    if (auto cores = model::parse_cpu(text_at(container, {"resources", "limits", "cpu"})))
        record.cpu_millicores = std::llround(*cores * kMillicores);
    if (auto bytes = model::parse_memory(text_at(container, {"resources", "limits", "memory"})))
        record.memory_bytes = static_cast<std::int64_t>(*bytes);
}

/// Of one in a pool: its task says what it runs.
void read_task(const BatchSandbox& batch, store::SandboxRecord& record) {
    record.sandbox.image_uri = kube::annotation_of(batch.metadata, annotation::kImage);
    record.base_image = record.sandbox.image_uri;
    const json::value* process = at_path(batch.task_template, {"spec", "process"});
    if (!process || !process->is_object()) return;
    auto task = model::read_task_process(process->get_object());
    if (!task) return;
    for (const auto& [name, value] : task->env) {
        if (name == kubernetes::kAgentTokenVariable) record.agent_token = value;
    }
    auto words = model::shell_split(task->command.back());
    constexpr std::size_t kBefore = 2;  // exec, the agent's program
    if (!words || words->size() <= kBefore || words->front() != "exec") return;
    record.sandbox.entrypoint.assign(words->begin() + kBefore, words->end());
}

void read_metadata(const kube::Metadata& metadata, store::SandboxRecord& record) {
    model::Sandbox& sandbox = record.sandbox;
    sandbox.id = sandbox_id_of(metadata);
    sandbox.created_at = metadata.creation_time.value_or(Timestamp());
    model::StringMap labels;
    for (const auto& [name, value] : metadata.labels) {
        if (!model::is_reserved_key(name)) labels.emplace_back(name, value);
    }
    if (!labels.empty()) sandbox.metadata = std::move(labels);
    for (const auto& [name, value] : metadata.annotations) {
        if (name.starts_with(annotation::kExtensions)) {
            sandbox.extensions.emplace_back(
                std::string(kShownExtension) + name.substr(annotation::kExtensions.size()), value);
        }
    }
    sandbox.interception_mode = kube::annotation_of(metadata, annotation::kInterception);
    record.tenant = kube::label_of(metadata, label::kTenant);
    record.endpoints.egress_token = kube::annotation_of(metadata, annotation::kEgressToken);
    const std::string renew = kube::annotation_of(metadata, annotation::kRenewSeconds);
    std::int64_t seconds = 0;
    const auto [end, problem] = std::from_chars(renew.data(), renew.data() + renew.size(), seconds);
    if (!renew.empty() && problem == std::errc()) record.renew_seconds = seconds;
}

}  // namespace

std::string sandbox_id_of(const kube::Metadata& metadata) {
    return kube::label_of(metadata, label::kId);
}

store::SandboxRecord cluster_record(const BatchSandbox& batch, const kubernetes::Pod* pod,
                                    bool answered) {
    store::SandboxRecord record;
    read_metadata(batch.metadata, record);
    record.sandbox.pool = batch.pool;
    record.sandbox.platform = platform_of(batch.pod_template);
    record.sandbox.expires_at = batch.expires_at;
    record.sandbox.status = kubernetes::sandbox_status(batch, pod, answered);
    if (const json::value* container = sandbox_container(batch.pod_template)) {
        read_container(*container, record);
    } else if (kubernetes::is_pooled(batch)) {
        read_task(batch, record);
    } else {
        record.sandbox.image_uri = "unknown";
    }
    std::string address;
    if (pod && !pod->is_going() && !pod->has_ended()) address = pod->address;
    if (const auto told = kubernetes::endpoints_of(batch);
        address.empty() && !pod && !told.empty()) {
        address = told.front();
    }
    if (!address.empty()) {
        record.endpoints.agent = model::AgentAddress(address, kubernetes::kAgentPort);
        record.endpoints.internal_host = address;
        record.endpoints.own_address = true;
    }
    return record;
}

}  // namespace opensandbox::lifecycle
