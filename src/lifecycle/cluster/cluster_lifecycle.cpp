#include "lifecycle/cluster/cluster_lifecycle.hpp"

#include "base/log.hpp"
#include "lifecycle/cluster/cluster_error.hpp"
#include "lifecycle/cluster/cluster_record.hpp"
#include "runtime/agent_greeting.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/allocation.hpp"

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;

/// How long a start waits for the list of sandboxes.
constexpr std::chrono::seconds kFirstList{30};
constexpr std::chrono::milliseconds kStep{10};

kube::ConnectionSettings connection_settings(const kubernetes::KubernetesOptions& options) {
    kube::ConnectionSettings settings;
    settings.reads = {static_cast<double>(options.read_qps),
                      static_cast<double>(options.read_burst)};
    settings.writes = {static_cast<double>(options.write_qps),
                       static_cast<double>(options.write_burst)};
    settings.user_agent = "opensandbox-server";
    return settings;
}

runtime::Capabilities capabilities_of(const kubernetes::KubernetesOptions& options) {
    runtime::Capabilities can;
    can.hooks = true;
    can.isolation = true;
    can.network_policy = true;
    can.credential_proxy = runtime::egress_mode_of(options.egress) == "dns+nft";
    can.host_volumes = true;
    can.claim_volumes = true;
    can.gpus = true;
    can.fine_limits = true;
    can.pools = true;
    can.memory_volumes = true;
    can.foreign_platforms = true;
    return can;
}

}  // namespace

ClusterLifecycle::ClusterLifecycle(asio::any_io_executor executor, kube::Cluster cluster,
                                   ClusterSettings settings)
    : executor_(executor),
      settings_(std::move(settings)),
      connection_(executor, std::move(cluster), connection_settings(settings_.options)),
      client_(connection_, "opensandbox-server"),
      batches_("batchsandboxes", kubernetes::read_batch_sandbox),
      pods_("pods", kubernetes::read_pod),
      batch_reflector_(client_,
                       kube::watch_of(kubernetes::kBatchSandboxes, space_watched(),
                                      kubernetes::label::kId, {"spec", "status"}),
                       batches_),
      pod_reflector_(client_,
                     kube::watch_of(kube::kPods, space_watched(), kubernetes::label::kId,
                                    kubernetes::pod_members()),
                     pods_),
      probes_(executor, runtime::probe_options()),
      changes_(executor),
      pools_(
          client_, settings_.options,
          [this](const std::string& tenant) { return space_of(tenant); }, space_watched()),
      tasks_(executor) {
    rules_.error_prefix = error_prefix();
    rules_.arch = host_arch();
    rules_.capabilities = capabilities_of(settings_.options);
    rules_.max_timeout_seconds = settings_.max_timeout_seconds;
    batches_.listen([this](const auto& before, const auto& after) { see_batch(before, after); });
    pods_.listen([this](const auto& before, const auto& after) { see_pod(before, after); });
    pools_.pods.listen(
        [this](const auto& before, const auto& after) { see_pool_pod(before, after); });
}

/// The task keeps this object alive until it ends.
void ClusterLifecycle::spawn(Awaitable<void> task, std::string_view name) {
    auto hold = [](std::shared_ptr<ClusterLifecycle> self,
                   Awaitable<void> inner) -> Awaitable<void> {
        co_await std::move(inner);
        (void)self;
    };
    net::spawn(executor_, hold(shared_from_this(), std::move(task)), name);
}

std::string ClusterLifecycle::space_of(const std::string& tenant) const {
    if (!tenant.empty()) return tenant;
    const std::string& chosen = settings_.options.name_space;
    return chosen.empty() ? connection_.cluster().name_space : chosen;
}

/// Empty: all namespaces.
std::string ClusterLifecycle::space_watched() const {
    return settings_.has_tenants ? std::string() : space_of("");
}

/// What a start would otherwise wait for in vain.
Awaitable<Status> ClusterLifecycle::check_cluster() {
    kube::ListChoice few;
    few.name_space = space_watched();
    few.page = 1;
    auto listed = co_await client_.list(kubernetes::kBatchSandboxes, few);
    if (listed) co_return Status();
    std::string message = listed.error().message();
    if (listed.error().code() == ErrorCode::not_found) {
        message = "the cluster does not know BatchSandbox (" +
                  kube::api_version(kubernetes::kBatchSandboxes) +
                  "): apply what `opensandbox controller manifests` prints";
    }
    co_return Error(ErrorCode::unavailable, error_code("INITIALIZATION_ERROR"),
                    "kubernetes: " + message);
}

Awaitable<Status> ClusterLifecycle::start() {
    if (auto checked = co_await check_cluster(); !checked) co_return checked;
    spawn(batch_reflector_.run(), "watch sandboxes");
    spawn(pod_reflector_.run(), "watch pods");
    spawn(pools_.watch_pools(), "watch pools");
    spawn(pools_.watch_pods(), "watch pods of pools");
    const auto until = std::chrono::steady_clock::now() + kFirstList;
    while (!batches_.is_complete() || !pods_.is_complete() || !pools_.is_synced()) {
        if (std::chrono::steady_clock::now() >= until) {
            co_return Error(ErrorCode::unavailable, error_code("INITIALIZATION_ERROR"),
                            "kubernetes: objects were not listed within 30 s");
        }
        co_await net::sleep_for(kStep);
    }
    log::info("cluster joined", {{"server", connection_.cluster().server},
                                 {"namespace", space_watched()},
                                 {"sandboxes", index_.size()}});
    co_return Status();
}

Awaitable<void> ClusterLifecycle::stop(std::chrono::milliseconds grace) {
    stopping_ = true;
    const auto deadline = std::chrono::steady_clock::now() + grace;
    while (busy_ > 0 && std::chrono::steady_clock::now() < deadline)
        co_await net::sleep_for(kStep);
    if (busy_ > 0) log::warn("stopped with changes in flight");
    batch_reflector_.stop();
    pod_reflector_.stop();
    pools_.stop();
}

// The view of the cluster.

ClusterLifecycle::Batches::Pointer ClusterLifecycle::find_batch(std::string_view id) const {
    const auto at = keys_.find(id);
    return at == keys_.end() ? nullptr : batches_.find(at->second);
}

ClusterLifecycle::Pods::Pointer ClusterLifecycle::find_pod(const BatchSandbox& batch) const {
    if (kubernetes::is_pooled(batch)) {
        auto names = kubernetes::allocated_pods(batch.metadata);
        if (!names || names->empty()) return nullptr;
        return pools_.pods.find({batch.metadata.name_space, names->front()});
    }
    auto pod = pods_.find({batch.metadata.name_space, batch.metadata.name + "-0"});
    if (!pod) return nullptr;
    const kube::Owner* owner = kube::controller_of(pod->metadata);
    return owner && owner->uid == batch.metadata.uid ? pod : nullptr;
}

ClusterLifecycle::Pods::Pointer ClusterLifecycle::known_pod(const kube::ObjectKey& key) const {
    auto pod = pods_.find(key);
    return pod ? pod : pools_.pods.find(key);
}

bool ClusterLifecycle::has_answered(const Pod* pod) const {
    return pod && answered_.contains(pod->metadata.uid);
}

void ClusterLifecycle::show(const BatchSandbox& batch) {
    const auto pod = find_pod(batch);
    auto record = cluster_record(batch, pod.get(), has_answered(pod.get()));
    if (record.sandbox.id.empty()) return;
    if (settings_.has_tenants && record.tenant.empty()) record.tenant = batch.metadata.name_space;
    const std::string id = record.sandbox.id;
    keys_[id] = {batch.metadata.name_space, batch.metadata.name};
    index_.put(std::move(record));
    changes_.post(id);
}

void ClusterLifecycle::see_batch(const Batches::Pointer& before, const Batches::Pointer& after) {
    if (after) return show(*after);
    const std::string id = sandbox_id_of(before->metadata);
    keys_.erase(id);
    index_.erase(id);
    changes_.post(id);
}

void ClusterLifecycle::see_pod(const Pods::Pointer& before, const Pods::Pointer& after) {
    if (!after) answered_.erase(before->metadata.uid);
    const std::string id = sandbox_id_of((after ? after : before)->metadata);
    if (const auto batch = find_batch(id)) show(*batch);
}

void ClusterLifecycle::see_pool_pod(const Pods::Pointer& before, const Pods::Pointer& after) {
    if (!after) answered_.erase(before->metadata.uid);
    const kube::Metadata& metadata = (after ? after : before)->metadata;
    const std::string sandbox = kubernetes::claim_of(metadata).sandbox;
    if (sandbox.empty()) return;
    if (const auto batch = batches_.find({metadata.name_space, sandbox})) show(*batch);
}

Result<AgentAccess> ClusterLifecycle::agent(std::string_view id) const {
    const auto* entry = index_.find(id);
    if (!entry) return not_found(id);
    const store::SandboxRecord& record = entry->record;
    if (record.endpoints.agent.port == 0 && model::is_alive(record.sandbox.status.state)) {
        return Error(ErrorCode::not_found, error_code("POD_IP_NOT_AVAILABLE"),
                     "Sandbox " + std::string(id) + " has no address yet.");
    }
    AgentAccess access;
    access.endpoints = record.endpoints;
    access.token = record.agent_token;
    access.tenant = record.tenant;
    access.status = record.sandbox.status;
    access.renew_seconds = record.renew_seconds;
    return access;
}

runtime::Capabilities ClusterLifecycle::capabilities() const {
    return rules_.capabilities;
}

runtime::Figures ClusterLifecycle::figures() const {
    runtime::Figures figures;
    figures.sandboxes = index_.size();
    return figures;
}

}  // namespace opensandbox::lifecycle
