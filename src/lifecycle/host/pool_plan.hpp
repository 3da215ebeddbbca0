#pragma once

#include "model/pool.hpp"

#include <cstdint>

/// How many sandboxes a pool makes or removes (lifecycle 2.9). Pure.
namespace opensandbox::lifecycle {

/// What a pool has at one moment.
struct PoolCounts {
    [[nodiscard]] std::int64_t total() const { return idle + making + allocated; }

    std::int64_t idle = 0;
    std::int64_t making = 0;  ///< idle ones to be
    std::int64_t allocated = 0;
};

struct PoolStep {
    friend bool operator==(const PoolStep&, const PoolStep&) = default;

    std::int64_t make = 0;
    std::int64_t remove = 0;  ///< idle ones
};

/// Fewer idle ones than bufferMin: made up to the middle of the buffer, so that not every take is
/// followed by a refill. Never more than poolMax in all, never fewer than poolMin. More idle ones
/// than bufferMax: removed down to it.
PoolStep plan_pool(const model::PoolCapacity& capacity, const PoolCounts& counts);

/// Whether one more sandbox may be somebody's: not all of poolMax are yet. One that is being made
/// for the stock gives way.
bool has_room(const model::PoolCapacity& capacity, const PoolCounts& counts);

}  // namespace opensandbox::lifecycle
