#include "controller/work/batch_controller.hpp"

#include "base/log.hpp"
#include "controller/plan/pod_document.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/allocation.hpp"

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;

/// In which pods without an owner usually go.
constexpr std::chrono::milliseconds kForTheCollector{2'000};

/// Of a pod of ours: the object that it was made for.
kube::ObjectKey owner_key(const kube::Metadata& pod) {
    const kube::Owner* owner = kube::controller_of(pod);
    return {pod.name_space, owner ? owner->name : std::string()};
}

}  // namespace

BatchController::BatchController(asio::any_io_executor executor, kube::Client& client,
                                 ClusterView& view, EventWriter& events,
                                 const PoolController& pools, const TaskController& tasks,
                                 BatchSettings settings)
    : client_(client),
      view_(view),
      events_(events),
      pools_(pools),
      tasks_(tasks),
      settings_(settings),
      queue_(std::move(executor), settings_.workers,
             [this](kube::ObjectKey key) { return look_at(std::move(key)); }) {
    view_.batches.listen([this](const auto& before, const auto& after) {
        const kube::Metadata& metadata = (after ? after : before)->metadata;
        if (!after) {
            memories_.erase(metadata.uid);
            queue_.forget(key_of(metadata));
        }
        queue_.add(key_of(metadata));
    });
    view_.pods.listen([this](const auto& before, const auto& after) {
        const kube::Metadata& metadata = (after ? after : before)->metadata;
        const kube::ObjectKey owner = owner_key(metadata);
        if (owner.name.empty()) return;
        if (!after) orphans_.erase(metadata.uid);
        auto& pods = owned_[owner];
        if (after) {
            pods.insert(key_of(metadata));
        } else {
            pods.erase(key_of(metadata));
        }
        if (pods.empty()) owned_.erase(owner);
        queue_.add(owner);
    });
    view_.pool_pods.listen([this](const auto& before, const auto& after) {
        const kube::Metadata& metadata = (after ? after : before)->metadata;
        const std::string sandbox = kubernetes::claim_of(metadata).sandbox;
        if (!sandbox.empty()) queue_.add({metadata.name_space, sandbox});
    });
}

/// What is to be done for it by what is known of its pods.
BatchPlan BatchController::plan(const BatchSandbox& batch, BatchMemory& memory) const {
    const kube::ObjectKey key = key_of(batch.metadata);
    const kubernetes::BatchCounters tasks = tasks_.counters_of(batch);
    if (!kubernetes::is_pooled(batch)) {
        return plan_batch(batch, pods_of(key, batch.metadata.uid, false), settings_.recovery,
                          memory, now(), tasks);
    }
    std::vector<PodPointer> pods;
    if (auto names = kubernetes::pods_in(batch.metadata, kubernetes::annotation::kAllocated)) {
        for (const std::string& name : *names)
            pods.push_back(view_.pool_pods.find({key.name_space, name}));
    }
    return plan_pooled(batch, pods, pools_.is_full({key.name_space, batch.pool}), tasks, memory,
                       now());
}

std::vector<PodPointer> BatchController::pods_of(const kube::ObjectKey& owner,
                                                 const std::string& uid, bool others) const {
    std::vector<PodPointer> pods;
    const auto at = owned_.find(owner);
    if (at == owned_.end()) return pods;
    for (const kube::ObjectKey& key : at->second) {
        auto pod = view_.pods.find(key);
        if (!pod) continue;
        const kube::Owner* controller = kube::controller_of(pod->metadata);
        if (controller && (controller->uid == uid) != others) pods.push_back(std::move(pod));
    }
    return pods;
}

/// Pods whose object is gone. The cluster's own collector removes them, too; it may not know of a
/// new kind of object for half a minute, so what it left for a while is removed here.
Awaitable<Result<WorkQueue::Again>> BatchController::remove_orphans(kube::ObjectKey key,
                                                                    std::string uid) {
    WorkQueue::Again again;
    for (const PodPointer& pod : pods_of(key, uid, true)) {
        if (pod->is_going()) continue;
        const Timestamp since = orphans_.emplace(pod->metadata.uid, now()).first->second;
        if (now() - since < kForTheCollector) {
            again = kForTheCollector;
            continue;
        }
        kube::Deletion deletion;
        deletion.uid = pod->metadata.uid;
        auto removed = co_await client_.remove(kube::kPods, key_of(pod->metadata), deletion);
        if (!removed && removed.error().code() != ErrorCode::conflict) co_return removed.error();
        ++figures_.pods_removed;
    }
    co_return again;
}

Awaitable<Result<WorkQueue::Again>> BatchController::look_at(kube::ObjectKey key) {
    const auto batch = view_.batches.find(key);
    auto orphans = co_await remove_orphans(key, batch ? batch->metadata.uid : std::string());
    if (!orphans) co_return orphans.error();
    if (!batch) co_return *orphans;
    ++figures_.looked;
    BatchMemory& memory = memories_[batch->metadata.uid];
    BatchPlan wanted = plan(*batch, memory);
    WorkQueue::Again again = wanted.again;
    if (*orphans && (!again || **orphans < *again)) again = *orphans;
    auto done = co_await carry_out(batch.get(), &wanted);
    if (!done) {
        ++figures_.failed;
        co_return done.error();
    }
    co_return again;
}

Awaitable<Status> BatchController::carry_out(const BatchSandbox* batch, BatchPlan* plan) {
    if (plan->expire) {
        kube::Deletion deletion;
        deletion.uid = batch->metadata.uid;
        deletion.propagation = "Background";
        auto removed =
            co_await client_.remove(kubernetes::kBatchSandboxes, key_of(batch->metadata), deletion);
        if (!removed && removed.error().code() != ErrorCode::conflict) co_return removed;
        ++figures_.expired;
        log::info("expired", {{"batchsandbox", kube::to_string(key_of(batch->metadata))}});
        co_return Status();
    }
    // What a sandbox waits for comes before what is told of it.
    auto made = co_await make_pods(batch, plan);
    auto removed = co_await remove_pods(batch, plan);
    auto written = co_await write_down(batch, plan);
    if (!made) co_return made;
    if (!removed) co_return removed;
    co_return written;
}

Awaitable<Status> BatchController::make_pods(const BatchSandbox* batch, const BatchPlan* plan) {
    for (const std::int64_t index : plan->create) {
        auto made = co_await make_pod(batch, index);
        const auto memory = memories_.find(batch->metadata.uid);
        if (memory == memories_.end()) co_return Status();
        if (made) {
            memory->second.create_failure.clear();
            continue;
        }
        const std::string message = made.error().message();
        if (memory->second.create_failure != message) {
            tell(*batch, "Warning", "FailedCreate", message);
            memory->second.create_failure = message;
        }
        co_return made;
    }
    co_return Status();
}

Awaitable<Status> BatchController::make_pod(const BatchSandbox* batch, std::int64_t index) {
    auto document = pod_document(*batch, index);
    if (!document) co_return document.error();
    const auto memory = memories_.find(batch->metadata.uid);
    if (memory != memories_.end()) {
        const auto replaced = memory->second.replaced.find(index);
        if (replaced != memory->second.replaced.end() && replaced->second > 0) {
            json::value& annotations = (*document)["metadata"].as_object()["annotations"];
            if (!annotations.is_object()) annotations = json::object();
            annotations.get_object()[kRecoveryAttempt] = std::to_string(replaced->second);
        }
    }
    const kube::ObjectKey key{batch->metadata.name_space, pod_name(batch->metadata, index)};
    auto made = co_await client_.create(kube::kPods, key.name_space, std::move(*document));
    if (!made && made.error().wire() == "AlreadyExists") {
        auto there = co_await client_.get(kube::kPods, key);
        if (!there) co_return there.error();
        auto pod = kubernetes::read_pod(*there);
        if (!pod) co_return pod.error();
        const kube::Owner* owner = kube::controller_of(pod->metadata);
        if (!owner || owner->uid != batch->metadata.uid) {
            co_return Error(ErrorCode::conflict, "pod " + kube::to_string(key) +
                                                     ": there is one of this name that is not "
                                                     "this object's");
        }
        made = std::move(there);
    }
    if (!made) co_return made.error();
    ++figures_.pods_made;
    auto stored = view_.pods.store(*made);
    co_return stored ? Status() : Status(stored.error());
}

Awaitable<Status> BatchController::remove_pods(const BatchSandbox* batch, const BatchPlan* plan) {
    for (const BatchPlan::Removal& removal : plan->remove) {
        kube::Deletion deletion;
        deletion.uid = removal.uid;
        auto removed = co_await client_.remove(kube::kPods,
                                               {batch->metadata.name_space, removal.pod}, deletion);
        if (!removed && removed.error().code() != ErrorCode::conflict) co_return removed;
        ++figures_.pods_removed;
        if (removal.replaces_because.empty()) continue;
        ++figures_.pods_replaced;
        tell(*batch, "Normal", "ReplacedStuckPod",
             "pod " + removal.pod + " is replaced: " + removal.replaces_because);
    }
    co_return Status();
}

Awaitable<Status> BatchController::write_down(const BatchSandbox* batch, BatchPlan* plan) {
    const kube::ObjectKey key = key_of(batch->metadata);
    const std::string uid = batch->metadata.uid;
    if (!plan->endpoints && !plan->status) co_return Status();
    if (plan->endpoints) {
        json::object annotations;
        annotations[kubernetes::annotation::kEndpoints] = *plan->endpoints;
        annotations[kubernetes::annotation::kEndpointUids] = plan->endpoint_uids.value_or("[]");
        json::object metadata{{"uid", uid}};
        metadata["annotations"] = std::move(annotations);
        json::object content;
        content["metadata"] = std::move(metadata);
        kube::Patch patch;
        patch.content = std::move(content);
        auto patched = co_await client_.patch(kubernetes::kBatchSandboxes, key, patch);
        if (!patched && patched.error().code() == ErrorCode::not_found) co_return Status();
        if (!patched) co_return patched.error();
        (void)view_.batches.store(*patched);
    }
    if (plan->status) {
        if (plan->status->phase == kubernetes::phase::kFailed &&
            batch->status.phase != kubernetes::phase::kFailed) {
            for (const auto& condition : plan->status->conditions)
                tell(*batch, "Warning", condition.reason, condition.message);
        }
        json::object content;
        content["metadata"] = json::object{{"uid", uid}};
        content["status"] = kubernetes::write_batch_status(*plan->status);
        kube::Patch patch;
        patch.content = std::move(content);
        patch.subresource = "status";
        ++figures_.status_writes;
        auto patched = co_await client_.patch(kubernetes::kBatchSandboxes, key, patch);
        if (!patched && patched.error().code() == ErrorCode::not_found) co_return Status();
        if (!patched) co_return patched.error();
        (void)view_.batches.store(*patched);
    }
    const auto memory = memories_.find(uid);
    if (memory != memories_.end()) memory->second.written = now();
    co_return Status();
}

}  // namespace opensandbox::controller
