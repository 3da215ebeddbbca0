#pragma once

#include "agent/process/environment.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace opensandbox::agent {

/// What the sandbox has and uses at one moment.
struct Usage {
    double cpu_count = 1;
    std::chrono::microseconds cpu_time{0};  ///< used by all its processes since it began
    std::uint64_t memory_total = 0;         ///< bytes
    std::uint64_t memory_used = 0;          ///< bytes, not more than the total
};

/// Reads the sandbox's own figures: from its cgroup (v2, then v1) where that can be seen, else from
/// the processes of its namespace. Ceilings come from the cgroup, from
/// OPENSANDBOX_MEMORY_LIMIT_BYTES and OPENSANDBOX_CPU_LIMIT (cores) of the environment, and from
/// the machine, whichever is lowest.
Usage read_usage(const Environment& environment);

/// The value after `name` in text of "name value" lines, as in memory.stat. Pure.
std::optional<std::uint64_t> stat_value(std::string_view text, std::string_view name);

/// utime, stime and those of children that were waited for, in clock ticks, of a /proc/<pid>/stat
/// line. Pure.
std::optional<std::uint64_t> process_ticks(std::string_view stat_line);

/// Private resident bytes (resident less shared pages) of a /proc/<pid>/statm line. Pure.
std::optional<std::uint64_t> private_pages(std::string_view statm_line);

}  // namespace opensandbox::agent
