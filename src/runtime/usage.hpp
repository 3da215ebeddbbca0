#pragma once

#include <cstdint>
#include <optional>

namespace opensandbox::runtime {

/// What a sandbox used up to now, and what it was refused. What the host does not measure is empty.
struct Usage {
    std::optional<double> cpu_seconds;
    std::optional<std::uint64_t> memory_bytes;       ///< page cache included
    std::optional<std::uint64_t> memory_peak_bytes;  ///< the most it ever was
    std::optional<std::uint64_t> pids;               ///< processes and threads now
    std::optional<std::uint64_t> disk_bytes;         ///< in its writable layer
    std::optional<std::uint64_t> received_bytes;     ///< over its network link
    std::optional<std::uint64_t> sent_bytes;
    std::uint64_t oom_kills = 0;     ///< processes that the kernel ended for want of memory
    std::uint64_t pids_refused = 0;  ///< forks that failed at the limit
    friend bool operator==(const Usage&, const Usage&) = default;
};

}  // namespace opensandbox::runtime
