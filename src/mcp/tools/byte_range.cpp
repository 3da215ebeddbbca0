#include "mcp/tools/byte_range.hpp"

#include "base/json_string.hpp"

#include <charconv>
#include <string>

namespace opensandbox::mcp {

namespace {

constexpr std::string_view kUnit = "bytes=";

std::optional<std::uint64_t> whole_number(std::string_view text) {
    std::uint64_t number = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size()) return {};
    return number;
}

}  // namespace

sdk::Result<RangeHeader> parse_byte_range(std::string_view text) {
    const sdk::Error refused(
        sdk::ErrorCode::invalid_argument,
        "range_header: expected bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT, not " +
            std::string(text));
    if (!text.starts_with(kUnit)) return refused;
    text.remove_prefix(kUnit.size());
    const auto dash = text.find('-');
    if (dash == std::string_view::npos) return refused;
    RangeHeader range;
    const std::string_view first = text.substr(0, dash);
    const std::string_view last = text.substr(dash + 1);
    if (first.empty()) {
        range.last_bytes = whole_number(last);
        if (!range.last_bytes || *range.last_bytes == 0) return refused;
        return range;
    }
    auto begin = whole_number(first);
    if (!begin) return refused;
    range.begin = *begin;
    if (last.empty()) return range;
    range.end = whole_number(last);
    if (!range.end || *range.end < range.begin) return refused;
    return range;
}

std::size_t partial_character(std::string_view bytes) {
    return incomplete_utf8_tail(bytes);
}

}  // namespace opensandbox::mcp
