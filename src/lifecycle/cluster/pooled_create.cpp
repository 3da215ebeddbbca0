#include "base/identifier.hpp"
#include "base/log.hpp"
#include "lifecycle/cluster/birth.hpp"
#include "lifecycle/cluster/cluster_error.hpp"
#include "net/latch.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/workload/pooled_sandbox.hpp"

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;

/// Pods of a pool that are tried for one sandbox.
constexpr int kTries = 3;
/// A pod without probes is ready before its executor listens.
constexpr std::chrono::seconds kForTheExecutor{2};
constexpr std::chrono::milliseconds kBetweenCalls{20};

Error not_in_a_pool(std::string_view field) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER",
            std::string(field) + ": must not be given with extensions.poolRef."};
}

}  // namespace

/// What a request with a pool asks for beside what the pool decides (kubernetes 3.1).
Result<model::CreateRequest> ClusterLifecycle::pooled_request(const model::CreateRequest& request,
                                                              const ClusterPools::Pool& pool) {
    if (!request.volumes.empty()) return not_in_a_pool("volumes");
    if (request.network_policy) return not_in_a_pool("networkPolicy");
    if (request.credential_proxy) return not_in_a_pool("credentialProxy");
    if (request.platform) return not_in_a_pool("platform");
    if (request.snapshot_id) return not_in_a_pool("snapshotId");
    model::CreateRequest wanted = request;
    std::erase_if(wanted.extensions, [](const auto& entry) { return entry.first == "poolRef"; });
    wanted.image = kubernetes::image_of_template(pool.pod_template);
    wanted.image_auth.reset();
    wanted.resource_limits.clear();
    wanted.resource_requests.clear();
    if (wanted.entrypoint.empty()) wanted.entrypoint = {"tail", "-f", "/dev/null"};
    return wanted;
}

/// Gives the sandbox's task to the pod while its object is written; both have ended when it
/// returns.
Awaitable<Status> ClusterLifecycle::write_pooled(Birth* birth, ClusterPools::Pods::Pointer pod) {
    const runtime::SandboxSpec& spec = birth->admitted.spec;
    struct Told {
        explicit Told(asio::any_io_executor executor) : done(std::move(executor)) {}
        net::Latch done;
        Status status;
    };
    auto told = std::make_shared<Told>(executor_);
    std::optional<kubernetes::ClaimedPod> claimed;
    if (pod) {
        claimed.emplace(pod->metadata.name, pod->metadata.uid, pod->address);
        kubernetes::TaskExecutor executor{pod->address, kubernetes::task_token_of(*birth->pool)};
        std::vector<model::Task> tasks;
        tasks.push_back(kubernetes::sandbox_task(spec));
        auto tell = [](ClusterLifecycle* self, std::shared_ptr<Told> outcome,
                       kubernetes::TaskExecutor where,
                       std::vector<model::Task> all) -> Awaitable<void> {
            const auto until = std::chrono::steady_clock::now() + kForTheExecutor;
            while (true) {
                auto set = co_await self->tasks_.set(where, all);
                outcome->status = set ? Status() : Status(set.error());
                const bool absent = !set && set.error().code() == ErrorCode::unavailable;
                if (!absent || std::chrono::steady_clock::now() >= until) break;
                co_await net::sleep_for(kBetweenCalls);
            }
            outcome->done.open();
        };
        spawn(tell(this, told, std::move(executor), std::move(tasks)), "give a task");
    } else {
        told->done.open();
    }
    kubernetes::WorkloadMarks marks;
    if (birth->key) marks.idempotency = mark_of(*birth->key);
    auto manifest = kubernetes::pooled_manifest(spec, birth->pool->metadata.name, marks, claimed);
    auto made =
        co_await client_.create(kubernetes::kBatchSandboxes, birth->space, std::move(manifest));
    co_await told->done.wait();
    if (!made && made.error().wire() == "AlreadyExists" && birth->key) {
        birth->taken = true;
        co_return Status();
    }
    if (!made) co_return cluster_error(made.error(), "create sandbox");
    auto stored = batches_.store(*made);
    if (!stored) co_return cluster_error(stored.error(), "create sandbox");
    birth->claim.release();
    birth->uid = (*stored)->metadata.uid;
    if (told->status) co_return Status();
    co_return Error(ErrorCode::internal, error_code("POD_FAILED"),
                    "pod " + pod->metadata.name + ": " + told->status.error().message());
}

/// From a pod that waits where there is one; else the controller gives it one.
Awaitable<Result<ClusterLifecycle::Created>> ClusterLifecycle::make_pooled(Birth* birth) {
    const std::string id = birth->admitted.spec.id;
    const kube::ObjectKey pool{birth->space, birth->pool->metadata.name};
    Status outcome;
    for (int tried = 0; tried < kTries; ++tried) {
        auto pod = co_await pools_.claim(pool, id);
        if (!pod) co_return pod.error();
        outcome = co_await write_pooled(birth, *pod);
        if (outcome && !birth->taken) break;
        if (*pod) (void)co_await pools_.discard(*pod);
        if (birth->taken) co_return co_await join(id, *birth->key, birth->space);
        // What is half there has this name: it goes before another is made.
        if (!birth->uid.empty()) {
            co_await roll_back(id, birth->space, birth->uid);
            birth->uid.clear();
        }
        log::warn("a pod of a pool did not become a sandbox",
                  {{"sandbox", id}, {"error", outcome.error().message()}});
        if (!*pod) break;
    }
    co_return co_await finish_birth(birth, std::move(outcome));
}

}  // namespace opensandbox::lifecycle
