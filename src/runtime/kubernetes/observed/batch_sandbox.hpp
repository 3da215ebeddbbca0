#pragma once

#include "kube/object/metadata.hpp"
#include "runtime/kubernetes/observed/condition.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::kubernetes {

/// status.phase of a BatchSandbox (kubernetes 1.1).
namespace phase {
inline constexpr std::string_view kPending = "Pending";
inline constexpr std::string_view kSucceed = "Succeed";  ///< it runs
inline constexpr std::string_view kPausing = "Pausing";
inline constexpr std::string_view kPaused = "Paused";
inline constexpr std::string_view kResuming = "Resuming";
inline constexpr std::string_view kFailed = "Failed";
}  // namespace phase

/// Types of its conditions.
namespace condition {
inline constexpr std::string_view kReady = "Ready";
inline constexpr std::string_view kProgressing = "Progressing";
inline constexpr std::string_view kPaused = "Paused";
inline constexpr std::string_view kPauseFailed = "PauseFailed";
inline constexpr std::string_view kResumeFailed = "ResumeFailed";
inline constexpr std::string_view kPodFailed = "PodFailed";
inline constexpr std::string_view kPoolAllocationPending = "PoolAllocationPending";
}  // namespace condition

/// How many replicas are where; all of them are always written.
struct BatchCounters {
    std::int64_t replicas = 0;   ///< pods that exist
    std::int64_t allocated = 0;  ///< those with a node or an address
    std::int64_t ready = 0;
    std::int64_t task_running = 0;
    std::int64_t task_succeed = 0;
    std::int64_t task_failed = 0;
    std::int64_t task_pending = 0;
    std::int64_t task_unknown = 0;

    bool operator==(const BatchCounters&) const = default;
};

struct BatchStatus {
    std::int64_t observed_generation = 0;
    std::int64_t pause_observed_generation = 0;
    BatchCounters counters;
    std::string phase;  ///< empty: nobody has written a status
    Conditions conditions;

    bool operator==(const BatchStatus&) const = default;
};

/// A BatchSandbox (kubernetes 1.1).
struct BatchSandbox {
    kube::Metadata metadata;
    std::int64_t replicas = 1;
    std::string pool;                ///< poolRef; empty: pods of its own
    json::value pod_template;        ///< an object, or null
    json::array shard_patches;       ///< index i: for replica i
    json::value task_template;       ///< an object, or null
    json::array shard_task_patches;  ///< index i: for the task of replica i
    bool releases_pods = false;      ///< taskResourcePolicyWhenCompleted: Release
    std::optional<Timestamp> expires_at;
    std::optional<bool> pause;
    BatchStatus status;
};

/// `invalid_argument` names the member.
Result<BatchSandbox> read_batch_sandbox(const json::object& object);

/// The status as the API server takes it.
json::object write_batch_status(const BatchStatus& status);

/// Whether its pods come from a pool: it has one, and no template of its own.
bool is_pooled(const BatchSandbox& batch);

/// The address of every replica, "" where there is none, by the annotation; empty without one.
std::vector<std::string> endpoints_of(const BatchSandbox& batch);

}  // namespace opensandbox::runtime::kubernetes
