#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// The values of `resourceLimits` (lifecycle 2.7).
namespace opensandbox::model {

/// More than any machine has, and so little that sums over all sandboxes stay exact.
inline constexpr double kMostCores = 1'000'000;
inline constexpr std::uint64_t kMostMemory = 1ULL << 50;
inline constexpr std::int64_t kMostGpus = 65536;

/// Cores: "0.5", "2", "500m", "1e-1"; finite and above 0.
std::optional<double> parse_cpu(std::string_view text);

/// Bytes: digits and a unit of b, k, kb, ki, m, mb, mi, g, gb, gi, t, tb, ti (case ignored; k, m, g
/// and t decimal, the others with i binary), blanks around; above 0, no fractions.
std::optional<std::uint64_t> parse_memory(std::string_view text);

/// A count above 0, or -1 for "all".
std::optional<std::int64_t> parse_gpu(std::string_view text);

}  // namespace opensandbox::model
