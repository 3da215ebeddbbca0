#pragma once

#include <cstdint>
#include <optional>

namespace opensandbox::sdk::wire {

/// 0644 becomes 644: the wire's integer shows octal digits in decimal.
std::int64_t mode_to_wire(std::uint32_t mode);
/// 644 becomes 0644; empty when a digit is 8 or 9 or there are more than four.
std::optional<std::uint32_t> mode_from_wire(std::int64_t digits);

}  // namespace opensandbox::sdk::wire
