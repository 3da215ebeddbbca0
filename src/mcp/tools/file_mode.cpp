#include "mcp/tools/file_mode.hpp"

namespace opensandbox::mcp {

namespace {

constexpr std::int64_t kStandardMode = 755;
constexpr std::int64_t kLargestMode = 7777;
constexpr std::int64_t kDecimal = 10;
constexpr std::uint32_t kOctal = 8;

sdk::Result<std::uint32_t> read_mode(std::int64_t digits) {
    const sdk::Error refused(sdk::ErrorCode::invalid_argument,
                             "mode: expected octal digits as a number, such as 644 or 755, not " +
                                 std::to_string(digits));
    if (digits < 0 || digits > kLargestMode) return refused;
    std::uint32_t mode = 0;
    std::uint32_t place = 1;
    for (; digits > 0; digits /= kDecimal, place *= kOctal) {
        const auto digit = static_cast<std::uint32_t>(digits % kDecimal);
        if (digit >= kOctal) return refused;
        mode += digit * place;
    }
    return mode;
}

std::optional<std::string> text_of(const json::object& from, std::string_view name) {
    auto text = json::get_string(from, name);
    return text ? *text : std::nullopt;
}

}  // namespace

sdk::Result<sdk::Permissions> read_permissions(const json::object& from) {
    auto given = json::get_integer(from, "mode");
    auto mode = read_mode(given ? given->value_or(kStandardMode) : -1);
    if (!mode) return mode.error();
    sdk::Permissions permissions(*mode);
    permissions.owner = text_of(from, "owner");
    permissions.group = text_of(from, "group");
    return permissions;
}

}  // namespace opensandbox::mcp
