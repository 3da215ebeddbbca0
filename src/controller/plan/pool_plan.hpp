#pragma once

#include "controller/plan/batch_plan.hpp"
#include "runtime/kubernetes/observed/batch_sandbox.hpp"
#include "runtime/kubernetes/observed/pool.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::controller {

using BatchPointer = std::shared_ptr<const runtime::kubernetes::BatchSandbox>;

/// What is to be done for one pool.
struct PoolPlan {
    /// Pods for a sandbox, to be claimed and then written down.
    struct Grant {
        BatchPointer batch;
        std::vector<PodPointer> pods;
        std::vector<std::string> lost;  ///< that it has and are gone: others take their places
    };
    /// A sandbox that is being deleted: its pods go, then its finalizer.
    struct Release {
        BatchPointer batch;
        std::vector<PodPointer> pods;
    };
    /// Pods that a sandbox gives back though it stays: its task has ended.
    struct Return {
        BatchPointer batch;
        std::vector<std::string> names;
        std::vector<PodPointer> pods;  ///< those that are still there
    };
    std::vector<Grant> grants;
    std::vector<Return> returns;
    std::vector<Release> releases;
    std::int64_t create = 0;
    std::vector<PodPointer> remove;
    /// Sandboxes that wait though the pool has as many pods as it may.
    bool is_full = false;
    std::optional<runtime::kubernetes::PoolFigures> status;
    std::optional<std::chrono::milliseconds> again;
};

/// Pods of a pool, as its capacity wants them (kubernetes 2.2), and whose they are: sandboxes
/// get them in the order in which they were made; one that lost a pod gets another; a pod that was
/// somebody's never becomes another's; claims without a sandbox end after half a minute. `revision`
/// is that of the template as it is now. Pure.
PoolPlan plan_pool(const runtime::kubernetes::Pool& pool, const std::vector<PodPointer>& pods,
                   const std::vector<BatchPointer>& batches, const std::string& revision,
                   Timestamp now);

/// The revision of a pool's template: what its status says, while the template is the one that it
/// was said of; else a digest of it.
std::string revision_of(const runtime::kubernetes::Pool& pool);
/// What tells its template from others, whatever the order of members.
std::string template_digest(const runtime::kubernetes::Pool& pool);

/// A pod of the pool; its name is for the API server to choose.
Result<json::object> pool_pod(const runtime::kubernetes::Pool& pool, const std::string& revision);

}  // namespace opensandbox::controller
