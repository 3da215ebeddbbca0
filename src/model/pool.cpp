#include "model/pool.hpp"

#include "model/json_text.hpp"

namespace opensandbox::model {

std::string to_json(const Pool& pool, const PoolStatus& status) {
    auto number = [](std::int64_t value) { return std::to_string(value); };
    std::string out = "{\"name\":";
    append_json_string(out, pool.name);
    out += ",\"capacitySpec\":{\"bufferMax\":" + number(pool.capacity.buffer_max) +
           ",\"bufferMin\":" + number(pool.capacity.buffer_min) +
           ",\"poolMax\":" + number(pool.capacity.pool_max) +
           ",\"poolMin\":" + number(pool.capacity.pool_min) +
           "},\"status\":{\"total\":" + number(status.total) +
           ",\"allocated\":" + number(status.allocated) +
           ",\"available\":" + number(status.available) + ",\"revision\":\"" +
           (status.revision.empty() ? number(pool.revision) : status.revision) +
           "\"},\"createdAt\":\"" + to_rfc3339(pool.created_at) + "\"}";
    return out;
}

}  // namespace opensandbox::model
