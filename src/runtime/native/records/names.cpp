#include "runtime/native/records/names.hpp"

#include <charconv>
#include <cstdio>

namespace opensandbox::runtime::native {

/// FNV-1a of the path, folded to 24 bits.
std::string tag_of(const std::filesystem::path& state_directory) {
    std::uint32_t hash = 2166136261U;
    for (const char c : state_directory.string()) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    char text[7];
    std::snprintf(text, sizeof text, "%06x", (hash ^ (hash >> 24)) & 0xff'ffffU);
    return text;
}

std::string slot_name(SlotId slot) {
    char text[8];
    std::snprintf(text, sizeof text, "s%06x", slot.serial & 0xff'ffffU);
    return text;
}

std::optional<std::uint32_t> slot_serial(std::string_view name) {
    if (name.size() != 7 || name[0] != 's') return std::nullopt;
    std::uint32_t serial = 0;
    const auto result = std::from_chars(name.data() + 1, name.data() + 7, serial, 16);
    if (result.ec != std::errc{} || result.ptr != name.data() + 7) return std::nullopt;
    return serial;
}

}  // namespace opensandbox::runtime::native
