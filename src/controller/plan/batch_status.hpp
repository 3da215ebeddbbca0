#pragma once

#include "runtime/kubernetes/observed/batch_sandbox.hpp"
#include "runtime/kubernetes/observed/pod.hpp"
#include "runtime/kubernetes/observed/pod_failure.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// What a BatchSandbox says of its pods (kubernetes 2.1). Pure.
namespace opensandbox::controller {

/// The pods of an object, those too many left out.
struct Replicas {
    std::map<std::int64_t, std::shared_ptr<const runtime::kubernetes::Pod>> pods;  ///< by index
    /// Pods that failed for good, by name.
    std::vector<std::pair<std::string, runtime::kubernetes::PodFailure>> failures;
    bool waits_for_pool = false;               ///< which has as many pods as it may
    runtime::kubernetes::BatchCounters tasks;  ///< its task_ members, where there are tasks
};

/// The status that holds now. Ready are all replicas or none of it is said; Failed stays.
/// Conditions of a pause that failed are carried over. `create_failure`: why the last pod could not
/// be made.
runtime::kubernetes::BatchStatus batch_status(const runtime::kubernetes::BatchSandbox& batch,
                                              const Replicas& replicas,
                                              const std::string& create_failure, Timestamp now);

/// Values of the annotations that say where replicas are.
struct Addresses {
    std::string endpoints;  ///< JSON array: an address a replica, "" where there is none
    std::string uids;       ///< of the pods behind them
    bool none = true;       ///< no replica has an address
};
Addresses addresses_of(const runtime::kubernetes::BatchSandbox& batch, const Replicas& replicas);

}  // namespace opensandbox::controller
