#pragma once

#include "kube/api/client.hpp"
#include "kube/watch/cache.hpp"
#include "kube/watch/reflector.hpp"
#include "runtime/kubernetes/observed/batch_sandbox.hpp"
#include "runtime/kubernetes/observed/pod.hpp"
#include "runtime/kubernetes/observed/pool.hpp"

#include <string>

namespace opensandbox::controller {

/// All that the controllers know of the cluster: objects, the pods that were made for them, and the
/// pods of pools. Borrows the client.
class ClusterView {
  public:
    using Batches = kube::Cache<runtime::kubernetes::BatchSandbox>;
    using Pods = kube::Cache<runtime::kubernetes::Pod>;
    using Pools = kube::Cache<runtime::kubernetes::Pool>;

    /// `name_space` empty: all of them.
    ClusterView(asio::any_io_executor executor, kube::Client& client,
                const std::string& name_space);
    ClusterView(const ClusterView&) = delete;
    ClusterView& operator=(const ClusterView&) = delete;

    /// Watches until stop().
    void start();
    void stop();
    /// Whether everything was told once.
    [[nodiscard]] bool is_synced() const;

    Batches batches;
    Pods pods;  ///< made for an object
    Pools pools;
    Pods pool_pods;

  private:
    asio::any_io_executor executor_;
    kube::Reflector batch_reflector_;
    kube::Reflector pod_reflector_;
    kube::Reflector pool_reflector_;
    kube::Reflector pool_pod_reflector_;
};

inline kube::ObjectKey key_of(const kube::Metadata& metadata) {
    return {metadata.name_space, metadata.name};
}

}  // namespace opensandbox::controller
