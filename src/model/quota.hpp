#pragma once

#include <cstdint>
#include <optional>

namespace opensandbox::model {

/// Ceilings of one tenant, or of the server where there is one tenant; absent: none.
struct Quota {
    std::optional<std::int64_t> max_sandboxes;
    std::optional<std::int64_t> max_cpu_millicores;  ///< summed over resourceLimits.cpu
    std::optional<std::int64_t> max_memory_bytes;    ///< summed over resourceLimits.memory
    friend bool operator==(const Quota&, const Quota&) = default;
};

}  // namespace opensandbox::model
