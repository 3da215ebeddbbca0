#include "controller/plan/batch_status.hpp"

#include <algorithm>

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;
namespace condition = kubernetes::condition;
namespace phase = kubernetes::phase;

using kubernetes::BatchCounters;
using kubernetes::BatchSandbox;
using kubernetes::BatchStatus;
using kubernetes::Condition;

BatchCounters counters_of(const Replicas& replicas) {
    BatchCounters counters = replicas.tasks;
    for (const auto& [index, pod] : replicas.pods) {
        ++counters.replicas;
        if (!pod->node.empty() || !pod->address.empty()) ++counters.allocated;
        if (pod->is_ready()) ++counters.ready;
    }
    return counters;
}

/// Every replica runs or has ended well.
bool holds(const Replicas& replicas, const BatchSandbox& batch) {
    const auto fine = std::ranges::count_if(replicas.pods, [](const auto& entry) {
        return entry.second->is_ready() || entry.second->phase == "Succeeded";
    });
    return fine >= batch.replicas;
}

std::string phase_of(const Replicas& replicas, const BatchSandbox& batch,
                     const BatchCounters& counters) {
    if (batch.status.phase == phase::kFailed || !replicas.failures.empty())
        return std::string(phase::kFailed);
    const bool all_ready = batch.replicas > 0 && counters.ready >= batch.replicas;
    const bool still = batch.status.phase == phase::kSucceed && holds(replicas, batch);
    return std::string(all_ready || still ? phase::kSucceed : phase::kPending);
}

Condition pod_failed(const Replicas& replicas) {
    const auto& [pod, failure] = replicas.failures.front();
    Condition made;
    made.type = condition::kPodFailed;
    made.reason = failure.reason;
    made.message = std::to_string(replicas.failures.size()) + "/" +
                   std::to_string(replicas.pods.size()) +
                   " observed pods failed; primary reason=" + failure.reason +
                   "; sample pod=" + pod + ": " + failure.message;
    return made;
}

/// The same condition as before keeps its time.
void add(kubernetes::Conditions& conditions, const BatchSandbox& batch, Condition made,
         Timestamp now) {
    const Condition* before = kubernetes::find_condition(batch.status.conditions, made.type);
    const bool same = before && before->status == made.status && before->reason == made.reason &&
                      before->message == made.message;
    made.last_transition =
        same ? before->last_transition
             : std::optional<Timestamp>(std::chrono::floor<std::chrono::seconds>(now));
    conditions.push_back(std::move(made));
}

Condition holding(std::string_view type, std::string_view reason, std::string message = {}) {
    Condition made;
    made.type = type;
    made.reason = reason;
    made.message = std::move(message);
    return made;
}

}  // namespace

BatchStatus batch_status(const BatchSandbox& batch, const Replicas& replicas,
                         const std::string& create_failure, Timestamp now) {
    BatchStatus status;
    status.observed_generation = batch.metadata.generation;
    status.pause_observed_generation = batch.status.pause_observed_generation;
    status.counters = counters_of(replicas);
    status.phase = phase_of(replicas, batch, status.counters);
    if (status.phase == phase::kSucceed) {
        add(status.conditions, batch, holding(condition::kReady, "PodsReady"), now);
    } else if (status.phase == phase::kPending) {
        Condition progressing = holding(condition::kProgressing, "Creating");
        if (!create_failure.empty())
            progressing = holding(condition::kProgressing, "FailedCreate", create_failure);
        add(status.conditions, batch, std::move(progressing), now);
    }
    if (status.phase == phase::kPending && replicas.waits_for_pool) {
        add(status.conditions, batch,
            holding(condition::kPoolAllocationPending, "PoolAtMaximum",
                    "pool " + batch.pool + " has as many pods as it may"),
            now);
    }
    const Condition* told =
        kubernetes::find_condition(batch.status.conditions, condition::kPodFailed);
    if (status.phase == phase::kFailed && told) {
        status.conditions.push_back(*told);
    } else if (!replicas.failures.empty()) {
        add(status.conditions, batch, pod_failed(replicas), now);
    }
    for (const std::string_view type : {condition::kPauseFailed, condition::kResumeFailed}) {
        if (const Condition* kept = kubernetes::find_condition(batch.status.conditions, type))
            status.conditions.push_back(*kept);
    }
    return status;
}

Addresses addresses_of(const BatchSandbox& batch, const Replicas& replicas) {
    json::array endpoints;
    json::array uids;
    Addresses addresses;
    for (std::int64_t index = 0; index < batch.replicas; ++index) {
        const auto at = replicas.pods.find(index);
        const bool there = at != replicas.pods.end() && !at->second->address.empty() &&
                           !at->second->is_going() && !at->second->has_ended();
        endpoints.emplace_back(there ? at->second->address : std::string());
        uids.emplace_back(there ? at->second->metadata.uid : std::string());
        addresses.none = addresses.none && !there;
    }
    addresses.endpoints = json::serialize(endpoints);
    addresses.uids = json::serialize(uids);
    return addresses;
}

}  // namespace opensandbox::controller
