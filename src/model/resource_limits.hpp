#pragma once

#include "model/resource_quantity.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// The limits of a sandbox, one row each. A new one is a member and a row here, and the place that
/// enforces it: whatever else names limits walks the rows.
namespace opensandbox::model {

/// Ceilings of one sandbox; 0 means that the backend's default applies.
struct ResourceLimits {
    double cpu_cores = 0;   ///< 0.01 or more; no row: it has a fraction
    std::int64_t gpus = 0;  ///< -1: all; no row: only a backend with devices knows it
    std::uint64_t memory_bytes = 0;
    std::uint64_t pids = 0;           ///< processes and threads
    std::uint64_t disk_bytes = 0;     ///< of the writable layer
    std::uint64_t open_files = 0;     ///< of every process
    std::uint64_t network_rate = 0;   ///< bytes a second, each way
    std::uint64_t io_read_rate = 0;   ///< bytes a second from the disk of the writable layer
    std::uint64_t io_write_rate = 0;  ///< bytes a second to it
};

enum class LimitUnit : std::uint8_t { count, bytes, bytes_a_second };

struct LimitRow {
    std::uint64_t ResourceLimits::* member;
    std::array<std::string_view, 3> names;  ///< in resourceLimits, for one limit; the rest empty
    std::string_view setting{};             ///< default of native sandboxes: its key in [native]
    std::string_view record;                ///< in JSON documents on disk
    std::string_view title;                 ///< in diagnostics
    LimitUnit unit;
    std::uint64_t least;
    std::uint64_t most;
    std::string_view example{};  ///< of the setting
    std::uint64_t preset = 0;    ///< of native sandboxes where neither request nor setting say any
    bool fine = true;            ///< only backends with Capabilities::fine_limits know it
};

inline constexpr std::uint64_t kMostRate = 1ULL << 35;

inline constexpr std::array kLimits{
    LimitRow{.member = &ResourceLimits::memory_bytes,
             .names = {"memory"},
             .record = "memoryBytes",
             .title = "Memory",
             .unit = LimitUnit::bytes,
             .least = 6ULL << 20,
             .most = kMostMemory,
             .fine = false},
    LimitRow{.member = &ResourceLimits::pids,
             .names = {"pids"},
             .setting = "pids",
             .record = "pids",
             .title = "PIDs Limit",
             .unit = LimitUnit::count,
             .least = 16,
             .most = 4'194'304,
             .preset = 4096},
    LimitRow{.member = &ResourceLimits::disk_bytes,
             .names = {"ephemeral-storage", "storage", "disk"},
             .setting = "writable_layer",
             .record = "diskBytes",
             .title = "Disk",
             .unit = LimitUnit::bytes,
             .least = 16ULL << 20,
             .most = 16ULL << 40,
             .example = "10Gi"},
    LimitRow{.member = &ResourceLimits::open_files,
             .names = {"open-files"},
             .setting = "open_files",
             .record = "openFiles",
             .title = "Open Files",
             .unit = LimitUnit::count,
             .least = 256,
             .most = 1'048'576},
    LimitRow{.member = &ResourceLimits::network_rate,
             .names = {"network-rate"},
             .setting = "network_rate",
             .record = "networkRate",
             .title = "Network Rate",
             .unit = LimitUnit::bytes_a_second,
             .least = 8192,
             .most = kMostRate,
             .example = "10Mi"},
    LimitRow{.member = &ResourceLimits::io_read_rate,
             .names = {"io-read-rate"},
             .setting = "io_read_rate",
             .record = "ioReadRate",
             .title = "Disk Read Rate",
             .unit = LimitUnit::bytes_a_second,
             .least = 8192,
             .most = kMostRate,
             .example = "10Mi"},
    LimitRow{.member = &ResourceLimits::io_write_rate,
             .names = {"io-write-rate"},
             .setting = "io_write_rate",
             .record = "ioWriteRate",
             .title = "Disk Write Rate",
             .unit = LimitUnit::bytes_a_second,
             .least = 8192,
             .most = kMostRate,
             .example = "10Mi"},
};

// All members but the two without a row.
static_assert(sizeof(ResourceLimits) == (kLimits.size() + 2) * sizeof(std::uint64_t));

constexpr const LimitRow& limit_row(std::uint64_t ResourceLimits::* member) {
    for (const LimitRow& row : kLimits) {
        if (row.member == member) return row;
    }
    return kLimits.front();  // not reached: every such member has a row
}

/// What native sandboxes have without request or setting.
constexpr ResourceLimits preset_limits() {
    ResourceLimits limits;
    for (const LimitRow& row : kLimits)
        limits.*row.member = row.preset;
    return limits;
}

/// What a rule calls its amount: "4096", "16Mi".
std::string limit_text(const LimitRow& row, std::uint64_t amount);
/// "a count from 16 to 4194304", "a size from 16Mi to 16Ti", "bytes a second from 8Ki to 32Gi".
std::string range_text(const LimitRow& row);

}  // namespace opensandbox::model
