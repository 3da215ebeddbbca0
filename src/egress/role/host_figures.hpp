#pragma once

#include <cstdint>
#include <string_view>

namespace opensandbox::egress {

/// What the whole machine uses (network contract 1.8), 0 where /proc does not say.
struct HostFigures {
    std::uint64_t memory_used = 0;  ///< bytes
    std::uint64_t busy_ticks = 0;   ///< of all processors since it started
    std::uint64_t all_ticks = 0;

    /// The share of the processors' time that was used since `before`, 0 to 1.
    [[nodiscard]] double cpu_share(const HostFigures& before) const;
};

/// Of the texts of /proc/meminfo and /proc/stat. Pure.
HostFigures parse_host_figures(std::string_view meminfo, std::string_view stat);

/// Reads them now; does not block.
HostFigures read_host_figures();

}  // namespace opensandbox::egress
