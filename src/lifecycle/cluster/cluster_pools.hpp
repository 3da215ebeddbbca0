#pragma once

#include "kube/api/client.hpp"
#include "kube/watch/cache.hpp"
#include "kube/watch/reflector.hpp"
#include "lifecycle/pools.hpp"
#include "runtime/kubernetes/kubernetes_options.hpp"
#include "runtime/kubernetes/observed/pod.hpp"
#include "runtime/kubernetes/observed/pool.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>

namespace opensandbox::lifecycle {

/// Pools of a cluster and their pods, as watches tell of them. A pod is taken by a claim that the
/// API server gives to one, be it this server, another or the controller. A part of the
/// ClusterLifecycle; everything given is borrowed. For one event loop.
class ClusterPools final : public Pools {
  public:
    using Pod = runtime::kubernetes::Pod;
    using Pool = runtime::kubernetes::Pool;
    using Pods = kube::Cache<Pod>;
    using PoolCache = kube::Cache<Pool>;
    using SpaceOf = std::function<std::string(const std::string& tenant)>;

    ClusterPools(kube::Client& client, const runtime::kubernetes::KubernetesOptions& options,
                 SpaceOf space_of, const std::string& watched);

    [[nodiscard]] Status supported() const override { return {}; }
    /// 409 KUBERNETES::POOL_ALREADY_EXISTS, 500 POOL_API_ERROR.
    Awaitable<Result<std::string>> create(model::PoolRequest request, std::string tenant) override;
    [[nodiscard]] Result<std::string> get(const Key& key) const override;
    [[nodiscard]] Result<std::string> list(const std::string& tenant) const override;
    Awaitable<Result<std::string>> resize(Key key, model::PoolCapacity capacity) override;
    /// Its pods go with it, also those that are somebody's.
    Awaitable<Status> remove(Key key) override;

    // For creates.

    /// 404 KUBERNETES::POOL_NOT_FOUND. "*": one with an idle pod, else any.
    [[nodiscard]] Result<PoolCache::Pointer> choose(const std::string& space,
                                                    std::string_view name) const;
    /// A pod that is this sandbox's from now on; null when none is idle that may be claimed so.
    Awaitable<Result<Pods::Pointer>> claim(kube::ObjectKey pool, std::string sandbox);
    /// The pod was somebody's: it goes.
    Awaitable<Status> discard(Pods::Pointer pod);

    Pods pods;

    Awaitable<void> watch_pools() { return pool_reflector_.run(); }
    Awaitable<void> watch_pods() { return pod_reflector_.run(); }
    void stop();
    [[nodiscard]] bool is_synced() const { return pools_.is_complete() && pods.is_complete(); }

  private:
    [[nodiscard]] Result<PoolCache::Pointer> find(const Key& key) const;
    [[nodiscard]] std::vector<Pods::Pointer> idle_of(const kube::ObjectKey& pool) const;

    kube::Client& client_;
    const runtime::kubernetes::KubernetesOptions& options_;
    SpaceOf space_of_;
    std::string who_;  ///< unlike that of any other server
    PoolCache pools_;
    kube::Reflector pool_reflector_;
    kube::Reflector pod_reflector_;
    std::map<kube::ObjectKey, std::set<kube::ObjectKey>> by_pool_;
    std::set<kube::ObjectKey> claiming_;
};

}  // namespace opensandbox::lifecycle
