#pragma once

#include "json/document.hpp"
#include "kube/object/metadata.hpp"
#include "model/pool.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace opensandbox::runtime::kubernetes {

/// status of a Pool; `written` is false when nobody has written one.
struct PoolFigures {
    std::int64_t observed_generation = 0;
    std::string revision;
    std::int64_t total = 0;
    std::int64_t allocated = 0;
    std::int64_t available = 0;
    std::int64_t updated = 0;

    bool operator==(const PoolFigures&) const = default;
};

/// How many of so many: a count, or a part in percent.
struct Share {
    std::int64_t amount = 25;
    bool percent = true;

    /// Rounded up, at least 1.
    [[nodiscard]] std::int64_t of(std::int64_t all) const;
};

/// A Pool (kubernetes 1.2).
struct Pool {
    kube::Metadata metadata;
    json::value pod_template;  ///< an object, or null
    model::PoolCapacity capacity;
    Share scale;
    Share update;
    std::optional<PoolFigures> status;
};

/// `invalid_argument` names the member.
Result<Pool> read_pool(const json::object& object);
json::object write_pool_status(const PoolFigures& figures);

/// What the executor of its pods wants in X-Task-Token: a variable of the container `sandbox`, or
/// of the first; empty: nothing.
std::string task_token_of(const Pool& pool);

}  // namespace opensandbox::runtime::kubernetes
