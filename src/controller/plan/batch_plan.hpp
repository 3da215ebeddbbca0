#pragma once

#include "runtime/kubernetes/observed/batch_sandbox.hpp"
#include "runtime/kubernetes/observed/pod.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::controller {

/// How pods that do not come up are replaced (kubernetes 2.1).
struct RecoverySettings {
    std::chrono::seconds stuck_threshold{60};  ///< in a state that may go by elsewhere
    std::int64_t max_attempts = 3;             ///< replacements a replica
};

/// What only a controller that runs knows of an object. All of it is rebuilt where it is lost.
struct BatchMemory {
    std::map<std::string, Timestamp> stuck_since;   ///< by UID of the pod
    std::map<std::int64_t, std::int64_t> replaced;  ///< replacements of a replica
    std::string create_failure;                     ///< of the last pod that could not be made
    std::optional<Timestamp> written;               ///< when something was written last
};

/// What is to be done for one object.
struct BatchPlan {
    struct Removal {
        std::string pod;
        std::string uid;
        std::int64_t index = 0;
        std::string replaces_because;  ///< empty: the replica is not wanted any more
    };
    bool expire = false;
    std::vector<std::int64_t> create;  ///< indices
    std::vector<Removal> remove;
    std::optional<runtime::kubernetes::BatchStatus> status;
    std::optional<std::string> endpoints;      ///< value of that annotation
    std::optional<std::string> endpoint_uids;  ///< of the one beside it
    /// When to look again though nothing happens.
    std::optional<std::chrono::milliseconds> again;
};

using PodPointer = std::shared_ptr<const runtime::kubernetes::Pod>;

/// Pods of one BatchSandbox without a pool: missing ones are made, those that hang are replaced,
/// those too many go a few at a time, and status and endpoints say what is there (kubernetes 2.1,
/// S3), in few writes: what changes all the time at most once a second. Pure but for `memory`.
BatchPlan plan_batch(const runtime::kubernetes::BatchSandbox& batch,
                     const std::vector<PodPointer>& pods, const RecoverySettings& recovery,
                     BatchMemory& memory, Timestamp now,
                     const runtime::kubernetes::BatchCounters& tasks = {});

/// The same for one whose pods come from a pool, which gives and takes them: `pods` by replica,
/// null where there is none.
BatchPlan plan_pooled(const runtime::kubernetes::BatchSandbox& batch,
                      const std::vector<PodPointer>& pods, bool pool_is_full,
                      const runtime::kubernetes::BatchCounters& tasks, BatchMemory& memory,
                      Timestamp now);

/// Which replacement of its replica a pod is, by its annotation.
inline constexpr const char* kRecoveryAttempt = "opensandbox.io/recovery-attempt";

}  // namespace opensandbox::controller
