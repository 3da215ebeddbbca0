#include "http/message.hpp"
#include "lifecycle/cluster/cluster_error.hpp"
#include "lifecycle/cluster/cluster_lifecycle.hpp"
#include "runtime/kubernetes/names.hpp"

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;

constexpr std::size_t kMostLog = 1 << 20;

std::string log_target(const kube::ObjectKey& pod, const runtime::LogQuery& query) {
    std::string target = kube::object_path(kube::kPods, pod, "log");
    target += "?container=" + std::string(kubernetes::kSandboxContainer);
    target += "&tailLines=" + std::to_string(query.tail);
    target += "&limitBytes=" + std::to_string(kMostLog);
    if (query.timestamps) target += "&timestamps=true";
    if (query.since) {
        target += "&sinceTime=" + http::percent_encode(to_rfc3339(
                                      std::chrono::floor<std::chrono::seconds>(*query.since)));
    }
    return target;
}

void describe_container(const kubernetes::ContainerState& container,
                        runtime::Inspection& inspection) {
    inspection.image = container.image;
    inspection.started_at = container.started_at;
    inspection.finished_at = container.finished_at;
    inspection.running = container.running;
    inspection.oom_killed = container.reason == "OOMKilled";
    if (container.terminated) inspection.exit_code = container.exit_code;
    if (!container.waiting.empty())
        inspection.error =
            container.waiting + (container.message.empty() ? "" : ": " + container.message);
}

}  // namespace

Awaitable<Result<std::string>> ClusterLifecycle::logs(std::string id, runtime::LogQuery query) {
    const auto batch = find_batch(id);
    if (!batch) co_return not_found(id);
    const auto pod = find_pod(*batch);
    if (!pod) co_return std::string();
    const kubernetes::ContainerState* container =
        kubernetes::find_container(pod->containers, kubernetes::kSandboxContainer);
    if (!container || !container->waiting.empty()) co_return std::string();
    kube::Call call;
    call.target = log_target({pod->metadata.name_space, pod->metadata.name}, query);
    auto text = co_await connection_.call(std::move(call));
    if (text) co_return text;
    if (text.error().code() == ErrorCode::not_found) co_return std::string();
    if (text.error().code() == ErrorCode::permission_denied) {
        co_return Error(
            ErrorCode::permission_denied, error_code("API_ERROR"),
            "The server's account lacks the permission to get pods/log: " + text.error().message());
    }
    co_return cluster_error(text.error(), "read logs of sandbox");
}

Awaitable<Result<runtime::Inspection>> ClusterLifecycle::inspect(std::string id) {
    const auto* entry = index_.find(id);
    const auto batch = find_batch(id);
    if (!entry || !batch) co_return not_found(id);
    const store::SandboxRecord& record = entry->record;
    runtime::Inspection inspection;
    inspection.object_id = batch->metadata.uid;
    inspection.name = batch->metadata.name_space + "/" + batch->metadata.name;
    inspection.image = record.sandbox.image_uri;
    inspection.created_at = record.sandbox.created_at;
    inspection.status = model::to_string(record.sandbox.status.state);
    inspection.limits.memory_bytes = static_cast<std::uint64_t>(record.memory_bytes);
    inspection.limits.cpu_cores = static_cast<double>(record.cpu_millicores) / 1000;
    for (const auto& [name, value] : batch->metadata.labels)
        inspection.labels.emplace_back(name, value);
    const auto pod = find_pod(*batch);
    if (!pod) co_return inspection;
    inspection.status = pod->phase;
    inspection.error = pod->message;
    if (!pod->node.empty()) inspection.addresses.emplace_back("node", pod->node);
    if (!pod->host_address.empty())
        inspection.addresses.emplace_back("node address", pod->host_address);
    if (!pod->address.empty()) inspection.addresses.emplace_back("pod", pod->address);
    if (const auto* container =
            kubernetes::find_container(pod->containers, kubernetes::kSandboxContainer)) {
        describe_container(*container, inspection);
    }
    for (const kubernetes::Condition& condition : pod->conditions) {
        inspection.health_log.push_back(
            condition.type + "=" + condition.status +
            (condition.reason.empty() ? "" : " " + condition.reason) +
            (condition.message.empty() ? "" : ": " + condition.message));
    }
    co_return inspection;
}

Awaitable<Result<std::vector<runtime::SandboxUsage>>> ClusterLifecycle::usage(std::size_t) {
    co_return std::vector<runtime::SandboxUsage>();
}

}  // namespace opensandbox::lifecycle
