#include "lifecycle/host/pool_plan.hpp"

#include <algorithm>

namespace opensandbox::lifecycle {

PoolStep plan_pool(const model::PoolCapacity& capacity, const PoolCounts& counts) {
    std::int64_t stock = counts.idle + counts.making;
    std::int64_t wanted = stock;
    if (stock < capacity.buffer_min) {
        std::int64_t half = (capacity.buffer_max - capacity.buffer_min + 1) / 2;
        wanted = capacity.buffer_min + half;
    }
    wanted = std::min(wanted, std::max(capacity.buffer_max, capacity.buffer_min));
    wanted = std::max(wanted, capacity.pool_min - counts.allocated);
    wanted = std::clamp<std::int64_t>(
        wanted, 0, std::max<std::int64_t>(0, capacity.pool_max - counts.allocated));
    if (wanted > stock) return {wanted - stock, 0};
    // What is being made cannot be taken back; it is looked at again when it is there.
    return {0, std::min(stock - wanted, counts.idle)};
}

bool has_room(const model::PoolCapacity& capacity, const PoolCounts& counts) {
    return counts.idle > 0 || counts.allocated < capacity.pool_max;
}

}  // namespace opensandbox::lifecycle
