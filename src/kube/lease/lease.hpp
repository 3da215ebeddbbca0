#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"

#include <chrono>
#include <string>

namespace opensandbox::kube {

/// Who leads, as an object of coordination.k8s.io/v1 says it.
struct Lease {
    std::string resource_version;
    std::string holder;  ///< empty: nobody
    std::chrono::seconds duration{0};
    Timestamp acquired;
    Timestamp renewed;
    std::int64_t transitions = 0;  ///< how often the holder changed
};

/// `invalid_argument` names the member.
Result<Lease> read_lease(const json::object& object);

/// The spec of a Lease.
json::object write_lease(const Lease& lease);

}  // namespace opensandbox::kube
