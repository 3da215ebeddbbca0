#pragma once

#include "kube/api/client.hpp"
#include "kube/watch/cache.hpp"
#include "kube/watch/reflector.hpp"
#include "lifecycle/admission.hpp"
#include "lifecycle/cluster/change_board.hpp"
#include "lifecycle/cluster/cluster_pools.hpp"
#include "lifecycle/cluster/lacking_snapshots.hpp"
#include "lifecycle/lifecycle.hpp"
#include "lifecycle/quota_ledger.hpp"
#include "runtime/kubernetes/kubernetes_options.hpp"
#include "runtime/kubernetes/observed/batch_sandbox.hpp"
#include "runtime/kubernetes/observed/pod.hpp"
#include "runtime/kubernetes/task_client.hpp"
#include "runtime/kubernetes/workload/volumes.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace opensandbox::lifecycle {

/// What a cluster's lifecycle works with besides the cluster.
struct ClusterSettings {
    runtime::kubernetes::KubernetesOptions options;
    std::optional<std::int64_t> max_timeout_seconds;  ///< server.max_sandbox_timeout_seconds
    bool has_tenants = false;  ///< sandboxes are in namespaces of their tenants' names
};

/// The life of sandboxes that are objects of a Kubernetes cluster, which is the only place where
/// anything is kept: several of these behind one address show and do the same, and one that dies
/// leaves nothing undone but what its callers can repeat. The controller makes the pods. One event
/// loop; make it with std::make_shared.
class ClusterLifecycle final : public Lifecycle,
                               public std::enable_shared_from_this<ClusterLifecycle> {
  public:
    ClusterLifecycle(asio::any_io_executor executor, kube::Cluster cluster,
                     ClusterSettings settings);

    /// Checks that the cluster has what is needed, and returns when its sandboxes are known. 503
    /// KUBERNETES::INITIALIZATION_ERROR says what is missing.
    Awaitable<Status> start() override;
    Awaitable<void> stop(std::chrono::milliseconds grace) override;
    /// Keys that are repeated find the sandbox by its id, which is made of the key.
    Awaitable<Result<Created>> create(model::CreateRequest request,
                                      std::optional<IdempotencyKey> key,
                                      Requester requester) override;
    Awaitable<Status> remove(std::string id) override;
    Awaitable<Result<Timestamp>> renew(std::string id, Timestamp expires_at) override;
    Awaitable<Result<Timestamp>> extend(std::string id, std::chrono::seconds by) override;
    Awaitable<Result<std::string>> patch_metadata(std::string id,
                                                  model::MetadataPatch patch) override;
    /// 404 KUBERNETES::POD_IP_NOT_AVAILABLE before the pod has an address.
    [[nodiscard]] Result<AgentAccess> agent(std::string_view id) const override;
    Awaitable<Status> pause(std::string id) override;
    Awaitable<Status> resume(std::string id) override;
    Awaitable<Result<std::vector<std::string>>> fork(std::string id, model::ForkRequest request,
                                                     Requester requester) override;
    Snapshots& snapshots() override { return snapshots_; }
    Pools& pools() override { return pools_; }
    /// 403 names the permission that is missing.
    Awaitable<Result<std::string>> logs(std::string id, runtime::LogQuery query) override;
    Awaitable<Result<runtime::Inspection>> inspect(std::string id) override;
    /// Nothing: the cluster's own metrics have it.
    Awaitable<Result<std::vector<runtime::SandboxUsage>>> usage(std::size_t limit) override;
    [[nodiscard]] const SandboxIndex& index() const override { return index_; }
    [[nodiscard]] runtime::Capabilities capabilities() const override;
    [[nodiscard]] runtime::Figures figures() const override;
    [[nodiscard]] std::string_view error_prefix() const override { return "KUBERNETES"; }

  private:
    using BatchSandbox = runtime::kubernetes::BatchSandbox;
    using Pod = runtime::kubernetes::Pod;
    using Batches = kube::Cache<BatchSandbox>;
    using Pods = kube::Cache<Pod>;

    // The view of the cluster.
    void spawn(Awaitable<void> task, std::string_view name);
    void see_batch(const Batches::Pointer& before, const Batches::Pointer& after);
    void see_pod(const Pods::Pointer& before, const Pods::Pointer& after);
    void see_pool_pod(const Pods::Pointer& before, const Pods::Pointer& after);
    void show(const BatchSandbox& batch);
    [[nodiscard]] Batches::Pointer find_batch(std::string_view id) const;
    [[nodiscard]] Pods::Pointer find_pod(const BatchSandbox& batch) const;
    [[nodiscard]] Pods::Pointer known_pod(const kube::ObjectKey& key) const;
    [[nodiscard]] bool has_answered(const Pod* pod) const;
    Awaitable<Status> check_cluster();

    // A create.
    struct Birth;
    [[nodiscard]] std::string space_of(const std::string& tenant) const;
    [[nodiscard]] std::string space_watched() const;
    Awaitable<Result<Created>> make(Birth& birth);
    static Result<model::CreateRequest> pooled_request(const model::CreateRequest& request,
                                                       const ClusterPools::Pool& pool);
    Awaitable<Result<Created>> make_pooled(Birth* birth);
    Awaitable<Status> write_pooled(Birth* birth, ClusterPools::Pods::Pointer pod);
    Awaitable<Result<Created>> finish_birth(Birth* birth, Status outcome);
    static std::string mark_of(const IdempotencyKey& key);
    Awaitable<Result<Created>> join(std::string id, IdempotencyKey key, std::string space);
    Awaitable<Status> write_objects(Birth& birth);
    Awaitable<Status> prepare_claims(Birth& birth);
    Awaitable<Status> prepare_claim(Birth& birth, runtime::kubernetes::WantedClaim wanted);
    Awaitable<void> hand_over_claims(Birth& birth, kube::Owner owner);
    Awaitable<Status> await_birth(std::string id, std::string token);
    Awaitable<bool> greet(std::string id, Pods::Pointer pod, std::string token);
    Awaitable<void> roll_back(std::string id, std::string space, std::string uid);
    Awaitable<Status> remove_managed_claims(std::string id, std::string space);

    Awaitable<Result<Timestamp>> set_expiry(std::string id, Timestamp expires_at);
    Awaitable<Result<Batches::Pointer>> patch_batch(std::string id, json::object content,
                                                    std::string action);

    asio::any_io_executor executor_;
    ClusterSettings settings_;
    AdmissionRules rules_;
    kube::Connection connection_;
    kube::Client client_;
    Batches batches_;
    Pods pods_;
    kube::Reflector batch_reflector_;
    kube::Reflector pod_reflector_;
    http::Client probes_;
    SandboxIndex index_;
    ChangeBoard changes_;
    QuotaLedger quotas_;
    std::map<std::string, kube::ObjectKey, std::less<>> keys_;  ///< objects by sandbox id
    std::set<std::string, std::less<>> answered_;               ///< UIDs of pods whose agent did
    LackingSnapshots snapshots_;
    ClusterPools pools_;
    runtime::kubernetes::TaskClient tasks_;
    std::size_t busy_ = 0;
    bool stopping_ = false;
};

}  // namespace opensandbox::lifecycle
