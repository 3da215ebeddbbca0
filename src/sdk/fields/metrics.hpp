#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto kMetricsMembers = [](auto& walker, auto& metrics) {
    walker.put("cpu_count", metrics.cpu_count);
    walker.put(
        json::Field("cpu_used_pct", "cpu_used_percentage").help("0 to 100, of all its processors"),
        metrics.cpu_used_percentage);
    walker.put(json::Field("mem_total_mib", "memory_total_in_mib"), metrics.memory_total_in_mib);
    walker.put(json::Field("mem_used_mib", "memory_used_in_mib"), metrics.memory_used_in_mib);
    walker.put(json::Field("timestamp").help("Milliseconds since the epoch"), metrics.timestamp);
};

}  // namespace opensandbox::sdk::fields
