#include "sdk/fields/file_mode.hpp"

namespace opensandbox::sdk::wire {

std::int64_t mode_to_wire(std::uint32_t mode) {
    std::int64_t digits = 0;
    std::int64_t place = 1;
    for (mode &= 07777; mode != 0; mode >>= 3, place *= 10)
        digits += (mode & 7) * place;
    return digits;
}

std::optional<std::uint32_t> mode_from_wire(std::int64_t digits) {
    if (digits < 0 || digits > 7777) return std::nullopt;
    std::uint32_t mode = 0;
    for (unsigned shift = 0; digits != 0; shift += 3, digits /= 10) {
        if (digits % 10 > 7) return std::nullopt;
        mode |= static_cast<std::uint32_t>(digits % 10) << shift;
    }
    return mode;
}

}  // namespace opensandbox::sdk::wire
