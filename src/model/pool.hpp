#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <string>

namespace opensandbox::model {

/// How many sandboxes a pool keeps (lifecycle 2.9). All 0 or more, minimum not above maximum.
struct PoolCapacity {
    friend bool operator==(const PoolCapacity&, const PoolCapacity&) = default;

    std::int64_t buffer_min = 0;  ///< fewer idle ones than this: more are made
    std::int64_t buffer_max = 0;  ///< more idle ones than this: some are removed
    std::int64_t pool_min = 0;    ///< idle and allocated ones together
    std::int64_t pool_max = 0;
};

/// Figures of a pool at one moment.
struct PoolStatus {
    std::int64_t total = 0;
    std::int64_t allocated = 0;
    std::int64_t available = 0;
    std::string revision;  ///< of its template; empty: that of Pool counts
};

/// A named stock of ready sandboxes, as the API shows it.
struct Pool {
    std::string name;
    std::string template_json;  ///< the object that the client gave, serialized
    PoolCapacity capacity;
    std::int64_t revision = 1;  ///< counts the changes of its capacity
    Timestamp created_at{};
};

/// The body of POST, GET and PUT and of the items of a list.
std::string to_json(const Pool& pool, const PoolStatus& status);

}  // namespace opensandbox::model
