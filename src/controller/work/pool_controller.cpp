#include "controller/work/pool_controller.hpp"

#include "base/log.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/allocation.hpp"

#include <algorithm>

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;
namespace annotation = kubernetes::annotation;

constexpr std::string_view kAnyPool = "*";
constexpr std::chrono::milliseconds kBetweenStatuses{1'000};

kube::ObjectKey pool_key(const kubernetes::BatchSandbox& batch) {
    return {batch.metadata.name_space, batch.pool};
}

json::object patch_of(json::object metadata) {
    json::object content;
    content["metadata"] = std::move(metadata);
    return content;
}

}  // namespace

PoolController::PoolController(asio::any_io_executor executor, kube::Client& client,
                               ClusterView& view, EventWriter& events, std::size_t workers,
                               std::string who)
    : client_(client),
      view_(view),
      events_(events),
      who_(std::move(who)),
      queue_(std::move(executor), workers,
             [this](kube::ObjectKey key) { return look_at(std::move(key)); }) {
    view_.pools.listen([this](const auto& before, const auto& after) {
        queue_.add(key_of((after ? after : before)->metadata));
    });
    view_.pool_pods.listen([this](const auto& before, const auto& after) {
        const kube::Metadata& metadata = (after ? after : before)->metadata;
        const kube::ObjectKey pool{metadata.name_space, kubernetes::pool_of(metadata)};
        if (after) {
            pods_by_pool_[pool].insert(key_of(metadata));
        } else {
            pods_by_pool_[pool].erase(key_of(metadata));
        }
        queue_.add(pool);
    });
    view_.batches.listen([this](const auto& before, const auto& after) {
        const auto known = [](const auto& batch) { return batch && kubernetes::is_pooled(*batch); };
        if (known(before)) {
            batches_by_pool_[pool_key(*before)].erase(key_of(before->metadata));
            queue_.add(pool_key(*before));
        }
        if (known(after)) {
            batches_by_pool_[pool_key(*after)].insert(key_of(after->metadata));
            queue_.add(pool_key(*after));
        }
    });
}

std::vector<PodPointer> PoolController::pods_of(const Pool& pool) const {
    std::vector<PodPointer> pods;
    const auto at = pods_by_pool_.find(key_of(pool.metadata));
    if (at == pods_by_pool_.end()) return pods;
    for (const kube::ObjectKey& key : at->second) {
        auto pod = view_.pool_pods.find(key);
        const kube::Owner* owner = pod ? kube::controller_of(pod->metadata) : nullptr;
        if (owner && owner->uid == pool.metadata.uid) pods.push_back(std::move(pod));
    }
    return pods;
}

std::vector<BatchPointer> PoolController::batches_of(const kube::ObjectKey& pool) const {
    std::vector<BatchPointer> batches;
    const auto at = batches_by_pool_.find(pool);
    if (at == batches_by_pool_.end()) return batches;
    for (const kube::ObjectKey& key : at->second) {
        if (auto batch = view_.batches.find(key)) batches.push_back(std::move(batch));
    }
    return batches;
}

Awaitable<Result<WorkQueue::Again>> PoolController::look_at(kube::ObjectKey key) {
    const auto pool = view_.pools.find(key);
    ++totals_.looked;
    if (!pool) {
        full_.erase(key);
        written_.erase(key);
        auto done = co_await look_at_orphans(key);
        if (!done) co_return done.error();
        co_return WorkQueue::Again();
    }
    const std::string revision = revision_of(*pool);
    PoolPlan plan = plan_pool(*pool, pods_of(*pool), batches_of(key), revision, now());
    const bool was_full = full_.contains(key);
    if (plan.is_full) {
        full_.insert(key);
    } else {
        full_.erase(key);
    }
    Status outcome;
    const auto keep = [&](const Status& done) {
        if (!done && outcome) outcome = done;
    };
    for (PoolPlan::Grant& grant_now : plan.grants)
        keep(co_await grant(std::move(grant_now)));
    for (PoolPlan::Release& release_now : plan.releases)
        keep(co_await release(std::move(release_now)));
    for (PoolPlan::Return& returned : plan.returns)
        keep(co_await take_back(std::move(returned)));
    for (const PodPointer& pod : plan.remove)
        keep(co_await remove_pod(pod));
    for (std::int64_t made = 0; made < plan.create && outcome; ++made)
        keep(co_await make_pod(pool.get(), revision));
    if (plan.status) {
        // It changes with every sandbox: once a second is often enough.
        const auto since = now() - written_[key];
        if (since >= kBetweenStatuses) {
            written_[key] = now();
            keep(co_await write_status(pool.get(), *plan.status));
        } else {
            const auto rest =
                std::chrono::ceil<std::chrono::milliseconds>(kBetweenStatuses - since);
            plan.again = plan.again ? std::min(*plan.again, rest) : rest;
        }
    }
    if (was_full != plan.is_full) {
        // What they say of it is written by those who look at sandboxes.
        for (const BatchPointer& batch : batches_of(key))
            view_.batches.touch(key_of(batch->metadata));
    }
    if (!outcome) {
        ++totals_.failed;
        co_return outcome.error();
    }
    co_return plan.again;
}

/// A pool that is gone: its sandboxes that are being deleted must not wait for it, and "*" stands
/// for any that is there.
Awaitable<Status> PoolController::look_at_orphans(kube::ObjectKey key) {
    for (const BatchPointer& batch : batches_of(key)) {
        if (batch->metadata.deletion_time) {
            if (auto done = co_await drop_finalizer(batch); !done) co_return done;
            continue;
        }
        if (batch->pool != kAnyPool) continue;
        std::string chosen;
        for (const auto& [pool, known] : view_.pools.objects()) {
            if (pool.name_space == key.name_space && !known->metadata.deletion_time) {
                chosen = pool.name;
                break;
            }
        }
        if (chosen.empty()) continue;
        json::object content{{"spec", json::object{{"poolRef", chosen}}}};
        content["metadata"] = json::object{{"uid", batch->metadata.uid}};
        kube::Patch patch;
        patch.content = std::move(content);
        auto patched = co_await client_.patch(kubernetes::kBatchSandboxes, key_of(batch->metadata),
                                              std::move(patch));
        if (!patched) co_return patched.error();
        (void)view_.batches.store(*patched);
    }
    co_return Status();
}

/// Claims first, then writes down: a claim that is not written down ends by itself.
Awaitable<Status> PoolController::grant(PoolPlan::Grant grant) {
    const kube::Metadata& metadata = grant.batch->metadata;
    std::vector<std::string> won;
    for (const PodPointer& pod : grant.pods) {
        if (kubernetes::claim_of(pod->metadata).sandbox != metadata.name) {
            kube::Apply apply;
            apply.content = kubernetes::claim_content(pod->metadata, metadata.name, who_, now());
            // One that led before is another manager: what it claimed is not ours to take.
            apply.field_manager = "opensandbox-" + who_;
            auto claimed =
                co_await client_.apply(kube::kPods, key_of(pod->metadata), std::move(apply));
            if (!claimed && claimed.error().code() == ErrorCode::conflict) {
                ++totals_.lost_claims;
                continue;
            }
            if (!claimed && claimed.error().code() == ErrorCode::not_found) continue;
            if (!claimed) co_return claimed.error();
            (void)view_.pool_pods.store(*claimed);
            ++totals_.claimed;
        }
        won.push_back(pod->metadata.name);
    }
    if (won.empty()) co_return Status();
    auto given = kubernetes::pods_in(metadata, annotation::kAllocated);
    if (!given) co_return given.error();
    // One that takes the place of another is the same replica.
    for (const std::string& pod : won) {
        if (grant.lost.empty()) {
            given->push_back(pod);
            continue;
        }
        std::ranges::replace(*given, grant.lost.front(), pod);
        events_.tell(kubernetes::kBatchSandboxes, metadata, "Warning", "PodLost",
                     "pod " + grant.lost.front() + " is gone; " + pod + " takes its place");
        grant.lost.erase(grant.lost.begin());
    }
    json::object annotations{{annotation::kAllocated, kubernetes::pods_text(*given)}};
    json::object change{{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}};
    change["annotations"] = std::move(annotations);
    std::vector<std::string> finalizers = metadata.finalizers;
    if (std::ranges::find(finalizers, kubernetes::kAllocationFinalizer) == finalizers.end()) {
        finalizers.emplace_back(kubernetes::kAllocationFinalizer);
        change["finalizers"] = json::string_array(finalizers);
    }
    kube::Patch patch;
    patch.content = patch_of(std::move(change));
    auto patched =
        co_await client_.patch(kubernetes::kBatchSandboxes, key_of(metadata), std::move(patch));
    // It has changed since: what was claimed is found again at the next look.
    if (!patched && patched.error().code() == ErrorCode::conflict) co_return Status();
    if (!patched && patched.error().code() == ErrorCode::not_found) co_return Status();
    if (!patched) co_return patched.error();
    (void)view_.batches.store(*patched);
    co_return Status();
}

Awaitable<Status> PoolController::release(PoolPlan::Release release) {
    for (const PodPointer& pod : release.pods) {
        if (auto removed = co_await remove_pod(pod); !removed) co_return removed;
    }
    co_return co_await drop_finalizer(release.batch);
}

Awaitable<Status> PoolController::take_back(PoolPlan::Return returned) {
    for (const PodPointer& pod : returned.pods) {
        if (auto removed = co_await remove_pod(pod); !removed) co_return removed;
    }
    const kube::Metadata& metadata = returned.batch->metadata;
    auto done = kubernetes::pods_in(metadata, annotation::kReleased);
    if (!done) co_return done.error();
    done->insert(done->end(), returned.names.begin(), returned.names.end());
    json::object change{{"uid", metadata.uid}};
    change["annotations"] = json::object{{annotation::kReleased, kubernetes::pods_text(*done)}};
    kube::Patch patch;
    patch.content = patch_of(std::move(change));
    auto patched =
        co_await client_.patch(kubernetes::kBatchSandboxes, key_of(metadata), std::move(patch));
    if (!patched && patched.error().code() == ErrorCode::not_found) co_return Status();
    if (!patched) co_return patched.error();
    (void)view_.batches.store(*patched);
    co_return Status();
}

Awaitable<Status> PoolController::drop_finalizer(BatchPointer batch) {
    std::vector<std::string> finalizers = batch->metadata.finalizers;
    if (std::erase(finalizers, kubernetes::kAllocationFinalizer) == 0) co_return Status();
    json::object change{{"uid", batch->metadata.uid},
                        {"resourceVersion", batch->metadata.resource_version}};
    change["finalizers"] = json::string_array(finalizers);
    kube::Patch patch;
    patch.content = patch_of(std::move(change));
    auto patched = co_await client_.patch(kubernetes::kBatchSandboxes, key_of(batch->metadata),
                                          std::move(patch));
    if (patched || patched.error().code() == ErrorCode::not_found ||
        patched.error().code() == ErrorCode::conflict)
        co_return Status();
    co_return patched.error();
}

Awaitable<Status> PoolController::remove_pod(PodPointer pod) {
    kube::Deletion deletion;
    deletion.uid = pod->metadata.uid;
    // One that waits may be claimed at this moment: then it has changed.
    if (kubernetes::claim_of(pod->metadata).sandbox.empty())
        deletion.resource_version = pod->metadata.resource_version;
    auto removed = co_await client_.remove(kube::kPods, key_of(pod->metadata), deletion);
    if (!removed && removed.error().code() == ErrorCode::conflict) co_return Status();
    if (removed) ++totals_.pods_removed;
    co_return removed;
}

Awaitable<Status> PoolController::make_pod(const Pool* pool, std::string revision) {
    auto document = pool_pod(*pool, revision);
    Status outcome = document ? Status() : Status(document.error());
    if (document) {
        auto made =
            co_await client_.create(kube::kPods, pool->metadata.name_space, std::move(*document));
        if (made) {
            ++totals_.pods_made;
            (void)view_.pool_pods.store(*made);
            co_return Status();
        }
        outcome = made.error();
    }
    events_.tell(kubernetes::kPools, pool->metadata, "Warning", "FailedCreate",
                 outcome.error().message());
    co_return outcome;
}

Awaitable<Status> PoolController::write_status(const Pool* pool, kubernetes::PoolFigures figures) {
    const kube::ObjectKey key = key_of(pool->metadata);
    const std::string digest = template_digest(*pool);
    const auto known = pool->metadata.annotations.find(std::string(annotation::kTemplateDigest));
    if (known == pool->metadata.annotations.end() || known->second != digest) {
        json::object change{{"uid", pool->metadata.uid}};
        change["annotations"] = json::object{{annotation::kTemplateDigest, digest}};
        kube::Patch patch;
        patch.content = patch_of(std::move(change));
        auto patched = co_await client_.patch(kubernetes::kPools, key, std::move(patch));
        if (!patched && patched.error().code() == ErrorCode::not_found) co_return Status();
        if (!patched) co_return patched.error();
    }
    json::object content{{"status", kubernetes::write_pool_status(figures)}};
    content["metadata"] = json::object{{"uid", pool->metadata.uid}};
    kube::Patch patch;
    patch.content = std::move(content);
    patch.subresource = "status";
    auto patched = co_await client_.patch(kubernetes::kPools, key, std::move(patch));
    if (!patched && patched.error().code() == ErrorCode::not_found) co_return Status();
    if (!patched) co_return patched.error();
    (void)view_.pools.store(*patched);
    co_return Status();
}

}  // namespace opensandbox::controller
