#include "mcp/tools/file_bytes.hpp"

#include "base/base64.hpp"
#include "base/json_string.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace opensandbox::mcp {

namespace {

constexpr unsigned kFirstBeyondAscii = 0x80;
constexpr unsigned kLatinLead = 0xC0;
constexpr unsigned kTail = 0x80;
constexpr unsigned kTailBits = 6;
constexpr unsigned kTailMask = 0x3F;
/// Lead bytes of the characters U+0080 to U+00FF.
constexpr unsigned char kLeads[] = {0xC2, 0xC3};

std::string latin1_to_utf8(std::string_view bytes) {
    std::string out;
    for (const char byte : bytes) {
        const auto code = static_cast<unsigned char>(byte);
        if (code < kFirstBeyondAscii) {
            out += byte;
        } else {
            out += static_cast<char>(kLatinLead | (code >> kTailBits));
            out += static_cast<char>(kTail | (code & kTailMask));
        }
    }
    return out;
}

sdk::Result<std::string> utf8_to_latin1(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto code = static_cast<unsigned char>(text[at]);
        if (code < kFirstBeyondAscii) {
            out += text[at];
            continue;
        }
        if (std::ranges::find(kLeads, code) == std::end(kLeads) || at + 1 >= text.size()) {
            return sdk::Error(sdk::ErrorCode::invalid_argument,
                              "content: has characters that latin-1 has not; use utf-8");
        }
        const auto next = static_cast<unsigned char>(text[++at]);
        out += static_cast<char>(((code & 0x3U) << kTailBits) | (next & kTailMask));
    }
    return out;
}

constexpr std::string_view kUnit = "bytes=";

std::optional<std::uint64_t> whole_number(std::string_view text) {
    std::uint64_t number = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size()) return {};
    return number;
}

}  // namespace

sdk::Result<Encoding> parse_encoding(std::string_view name) {
    std::string plain;
    for (const char c : name) {
        if (c != '-' && c != '_') plain += static_cast<char>(std::tolower(c));
    }
    if (plain == "utf8" || plain == "ascii" || plain.empty()) return Encoding::utf8;
    if (plain == "latin1" || plain == "iso88591") return Encoding::latin1;
    if (plain == "base64") return Encoding::base64;
    return sdk::Error(
        sdk::ErrorCode::invalid_argument,
        "encoding: expected utf-8, ascii, latin-1 or base64, not " + std::string(name));
}

sdk::Result<std::string> to_json_text(std::string_view bytes, Encoding encoding) {
    if (encoding == Encoding::base64) return to_base64(bytes);
    if (encoding == Encoding::latin1) return latin1_to_utf8(bytes);
    if (is_utf8(bytes)) return std::string(bytes);
    return sdk::Error(sdk::ErrorCode::invalid_argument,
                      "the file is not UTF-8 text: read it with encoding base64 or latin-1");
}

sdk::Result<std::string> from_json_text(std::string_view text, Encoding encoding) {
    if (encoding == Encoding::latin1) return utf8_to_latin1(text);
    if (encoding == Encoding::utf8) return std::string(text);
    auto bytes = from_base64(text);
    if (bytes) return std::move(*bytes);
    return sdk::Error(sdk::ErrorCode::invalid_argument, "content: is no base64");
}

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
