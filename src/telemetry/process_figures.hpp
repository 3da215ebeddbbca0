#pragma once

#include <cstdint>

namespace opensandbox::telemetry {

/// What this process uses now; 0 where /proc does not say.
struct ProcessFigures {
    std::uint64_t resident_bytes = 0;
    std::uint64_t open_descriptors = 0;
    double cpu_seconds = 0;  ///< user and system
    double start_time = 0;   ///< seconds since the epoch
};

/// Reads /proc/self; does not block.
ProcessFigures read_process_figures();

}  // namespace opensandbox::telemetry
