#include "lifecycle/admission_checks.hpp"
#include "model/resource_quantity.hpp"

#include <array>

namespace opensandbox::lifecycle {
namespace {

using runtime::ResourceLimits;

struct FineLimit {
    std::string_view key;
    std::uint64_t ResourceLimits::* member;
    std::uint64_t least;
    std::uint64_t most;
    std::string_view rule;
};

constexpr std::uint64_t kMebi = 1ULL << 20;
constexpr std::uint64_t kTebi = 1ULL << 40;
constexpr std::uint64_t kLeastRate = 8192;
constexpr std::uint64_t kMostRate = 1ULL << 35;
constexpr std::uint64_t kMostPids = 4'194'304;
constexpr std::uint64_t kMostFiles = 1'048'576;

constexpr std::string_view kDiskRule = "must be a size from 16Mi to 16Ti.";
constexpr std::string_view kRateRule = "must be bytes a second from 8Ki to 32Gi.";

constexpr std::array kLimits{
    FineLimit{"ephemeral-storage", &ResourceLimits::disk_bytes, 16 * kMebi, 16 * kTebi, kDiskRule},
    FineLimit{"storage", &ResourceLimits::disk_bytes, 16 * kMebi, 16 * kTebi, kDiskRule},
    FineLimit{"disk", &ResourceLimits::disk_bytes, 16 * kMebi, 16 * kTebi, kDiskRule},
    FineLimit{"pids", &ResourceLimits::pids, 16, kMostPids, "must be a count from 16 to 4194304."},
    FineLimit{"open-files", &ResourceLimits::open_files, 256, kMostFiles,
              "must be a count from 256 to 1048576."},
    FineLimit{"network-rate", &ResourceLimits::network_rate, kLeastRate, kMostRate, kRateRule},
    FineLimit{"io-read-rate", &ResourceLimits::io_read_rate, kLeastRate, kMostRate, kRateRule},
    FineLimit{"io-write-rate", &ResourceLimits::io_write_rate, kLeastRate, kMostRate, kRateRule},
};

}  // namespace

Status check_fine_limits(const model::StringMap& wanted, const AdmissionRules& rules,
                         ResourceLimits& limits) {
    if (!rules.capabilities.fine_limits) return {};
    for (const FineLimit& limit : kLimits) {
        const std::string* text = find_value(wanted, limit.key);
        if (!text) continue;
        const auto value = model::parse_memory(*text);
        const std::string field = "Invalid resourceLimits." + std::string(limit.key) + ": '";
        if (!value || *value < limit.least || *value > limit.most) {
            return invalid_parameter(field + *text + "'; " + std::string(limit.rule));
        }
        std::uint64_t& into = limits.*limit.member;
        if (into != 0 && into != *value) {
            return invalid_parameter(field + *text +
                                     "'; ephemeral-storage, storage and disk are one limit and "
                                     "must not differ.");
        }
        into = *value;
    }
    return {};
}

}  // namespace opensandbox::lifecycle
