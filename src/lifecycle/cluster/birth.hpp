#pragma once

#include "lifecycle/cluster/cluster_lifecycle.hpp"

namespace opensandbox::lifecycle {

/// One create on its way.
struct ClusterLifecycle::Birth {
    Admitted admitted;
    std::string space;
    std::optional<IdempotencyKey> key;
    ClusterPools::PoolCache::Pointer pool;  ///< null: a pod of its own
    QuotaLedger::Hold claim;
    std::string uid;                          ///< of the object, once it is written
    std::vector<std::string> managed_claims;  ///< that this request made and that go with it
    bool taken = false;                       ///< another request with the key was first
};

}  // namespace opensandbox::lifecycle
