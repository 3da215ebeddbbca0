#include "controller/work/cluster_view.hpp"

#include "net/task.hpp"
#include "runtime/kubernetes/names.hpp"

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;

}  // namespace

ClusterView::ClusterView(asio::any_io_executor executor, kube::Client& client,
                         const std::string& name_space)
    : batches("batchsandboxes", kubernetes::read_batch_sandbox),
      pods("pods", kubernetes::read_pod),
      pools("pools", kubernetes::read_pool),
      pool_pods("pods of pools", kubernetes::read_pod),
      executor_(std::move(executor)),
      batch_reflector_(
          client, kube::watch_of(kubernetes::kBatchSandboxes, name_space, {}, {"spec", "status"}),
          batches),
      pod_reflector_(client,
                     kube::watch_of(kube::kPods, name_space, kubernetes::label::kBatchName,
                                    kubernetes::pod_members()),
                     pods),
      pool_reflector_(
          client, kube::watch_of(kubernetes::kPools, name_space, {}, {"spec", "status"}), pools),
      pool_pod_reflector_(client,
                          kube::watch_of(kube::kPods, name_space, kubernetes::label::kPoolName,
                                         kubernetes::pod_members()),
                          pool_pods) {}

void ClusterView::start() {
    net::spawn(executor_, batch_reflector_.run(), "watch batchsandboxes");
    net::spawn(executor_, pod_reflector_.run(), "watch pods");
    net::spawn(executor_, pool_reflector_.run(), "watch pools");
    net::spawn(executor_, pool_pod_reflector_.run(), "watch pods of pools");
}

void ClusterView::stop() {
    batch_reflector_.stop();
    pod_reflector_.stop();
    pool_reflector_.stop();
    pool_pod_reflector_.stop();
}

bool ClusterView::is_synced() const {
    return batches.is_complete() && pods.is_complete() && pools.is_complete() &&
           pool_pods.is_complete();
}

}  // namespace opensandbox::controller
