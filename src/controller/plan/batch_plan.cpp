#include "controller/plan/batch_plan.hpp"

#include "controller/plan/batch_status.hpp"
#include "controller/plan/pod_document.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/pod_failure.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;
namespace phase = kubernetes::phase;

using kubernetes::BatchSandbox;
using kubernetes::Pod;
using kubernetes::PodFailure;
using std::chrono::milliseconds;

/// Pods too many that are removed at once.
constexpr std::size_t kRemovedAtOnce = 20;
constexpr milliseconds kBetweenRemovals{1'000};
/// Between writes of what changes all the time.
constexpr milliseconds kBetweenWrites{1'000};
/// A sandbox that comes up faster than this is never written down as Pending.
constexpr milliseconds kQuietStart{3'000};

void look_again(BatchPlan& plan, std::chrono::microseconds after) {
    const auto wait = std::max(std::chrono::ceil<milliseconds>(after), milliseconds(1));
    plan.again = plan.again ? std::min(*plan.again, wait) : wait;
}

std::int64_t attempt_of(const Pod& pod) {
    const auto at = pod.metadata.annotations.find(kRecoveryAttempt);
    if (at == pod.metadata.annotations.end()) return 0;
    std::int64_t number = 0;
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), number);
    return number;
}

bool comes_up(const BatchSandbox& batch) {
    return batch.status.phase.empty() || batch.status.phase == phase::kPending;
}

/// Pods are as they are while a sandbox is put to sleep or sleeps.
bool is_at_rest(const BatchSandbox& batch) {
    const std::string& now = batch.status.phase;
    return now == phase::kPausing || now == phase::kPaused || now == phase::kResuming;
}

/// What becomes of a pod that hangs: another takes its place, or it counts as failed.
std::optional<PodFailure> judge(const Pod& pod, std::int64_t index, const BatchSandbox& batch,
                                const RecoverySettings& recovery, BatchMemory& memory,
                                Timestamp now, BatchPlan& plan) {
    auto failure = kubernetes::failure_of(pod);
    if (!failure) {
        memory.stuck_since.erase(pod.metadata.uid);
        return std::nullopt;
    }
    if (failure->kind == PodFailure::Kind::terminal) return failure;
    if (failure->kind == PodFailure::Kind::passing || !comes_up(batch)) {
        // One that ended does not come back by itself.
        return pod.has_ended() ? failure : std::nullopt;
    }
    std::int64_t& replaced = memory.replaced[index];
    replaced = std::max(replaced, attempt_of(pod));
    if (replaced >= recovery.max_attempts) {
        failure->message += " (after " + std::to_string(replaced) + " replacements)";
        return failure;
    }
    const Timestamp since = memory.stuck_since.emplace(pod.metadata.uid, now).first->second;
    const auto waited = now - since;
    if (!pod.has_ended() && waited < recovery.stuck_threshold) {
        look_again(plan, recovery.stuck_threshold - waited);
        return std::nullopt;
    }
    ++replaced;
    memory.stuck_since.erase(pod.metadata.uid);
    plan.remove.push_back({pod.metadata.name, pod.metadata.uid, index, failure->reason});
    return std::nullopt;
}

/// False when there is nothing else to do: it goes, or goes now.
bool plan_life(const BatchSandbox& batch, Timestamp now, BatchPlan& plan) {
    if (batch.metadata.deletion_time) return false;
    if (!batch.expires_at) return true;
    if (*batch.expires_at <= now) {
        plan.expire = true;
        return false;
    }
    look_again(plan, *batch.expires_at - now);
    return true;
}

void plan_surplus(const std::vector<const Pod*>& surplus, BatchPlan& plan) {
    for (const Pod* pod : surplus) {
        if (plan.remove.size() >= kRemovedAtOnce) {
            look_again(plan, kBetweenRemovals);
            return;
        }
        plan.remove.push_back(
            {pod->metadata.name, pod->metadata.uid, pod_index(pod->metadata), {}});
    }
}

/// Whether a change has to be written at once.
bool is_due(const BatchMemory& memory, Timestamp now, bool urgent, BatchPlan& plan) {
    if (urgent || !memory.written || now - *memory.written >= kBetweenWrites) return true;
    look_again(plan, kBetweenWrites - (now - *memory.written));
    return false;
}

void plan_writes(const BatchSandbox& batch, const Replicas& replicas, BatchMemory& memory,
                 Timestamp now, BatchPlan& plan) {
    auto status = batch_status(batch, replicas, memory.create_failure, now);
    const bool first = batch.status.phase.empty();
    const auto age = now - batch.metadata.creation_time.value_or(now);
    // Tasks are asked for at once: what they say comes with the first words.
    const bool tells_tasks = replicas.tasks.task_pending + replicas.tasks.task_unknown == 0;
    if (first && status.phase != phase::kFailed && !tells_tasks && !replicas.waits_for_pool &&
        age < kQuietStart) {
        look_again(plan, kQuietStart - age);
        return;
    }
    if (first && status.phase == phase::kPending && memory.create_failure.empty() &&
        !replicas.waits_for_pool && age < kQuietStart) {
        look_again(plan, kQuietStart - age);
        return;
    }
    const bool turns = status.phase != batch.status.phase;
    const Addresses addresses = addresses_of(batch, replicas);
    const bool all_there = status.counters.ready >= batch.replicas;
    const std::string known =
        kube::annotation_of(batch.metadata, kubernetes::annotation::kEndpoints);
    const bool moved = addresses.endpoints != known && !(known.empty() && addresses.none);
    if (moved && is_due(memory, now, turns || all_there, plan)) {
        plan.endpoints = addresses.endpoints;
        plan.endpoint_uids = addresses.uids;
    }
    if (status != batch.status && is_due(memory, now, turns || all_there, plan))
        plan.status = std::move(status);
}

}  // namespace

BatchPlan plan_pooled(const BatchSandbox& batch, const std::vector<PodPointer>& pods,
                      bool pool_is_full, const kubernetes::BatchCounters& tasks,
                      BatchMemory& memory, Timestamp now) {
    BatchPlan plan;
    if (!plan_life(batch, now, plan) || is_at_rest(batch)) return plan;
    Replicas replicas;
    replicas.tasks = tasks;
    std::int64_t index = 0;
    for (const PodPointer& pod : pods) {
        if (index >= batch.replicas) break;
        if (pod) replicas.pods[index] = pod;
        if (pod && !pod->is_going()) {
            auto failure = kubernetes::failure_of(*pod);
            if (failure && (pod->has_ended() || failure->kind == PodFailure::Kind::terminal))
                replicas.failures.emplace_back(pod->metadata.name, std::move(*failure));
        }
        ++index;
    }
    replicas.waits_for_pool =
        pool_is_full && static_cast<std::int64_t>(replicas.pods.size()) < batch.replicas;
    plan_writes(batch, replicas, memory, now, plan);
    return plan;
}

BatchPlan plan_batch(const BatchSandbox& batch, const std::vector<PodPointer>& pods,
                     const RecoverySettings& recovery, BatchMemory& memory, Timestamp now,
                     const kubernetes::BatchCounters& tasks) {
    BatchPlan plan;
    if (!plan_life(batch, now, plan) || !batch.pool.empty() || is_at_rest(batch)) return plan;
    Replicas replicas;
    replicas.tasks = tasks;
    std::vector<const Pod*> surplus;
    for (const PodPointer& pod : pods) {
        const std::int64_t index = pod_index(pod->metadata);
        if (index < 0) continue;
        if (index >= batch.replicas) {
            if (!pod->is_going()) surplus.push_back(pod.get());
            continue;
        }
        replicas.pods[index] = pod;
        if (pod->is_going()) continue;
        if (auto failure = judge(*pod, index, batch, recovery, memory, now, plan))
            replicas.failures.emplace_back(pod->metadata.name, std::move(*failure));
    }
    plan_surplus(surplus, plan);
    for (std::int64_t index = 0; index < batch.replicas; ++index) {
        if (!replicas.pods.contains(index)) plan.create.push_back(index);
    }
    plan_writes(batch, replicas, memory, now, plan);
    return plan;
}

}  // namespace opensandbox::controller
