#include "base/json_string.hpp"

#include <charconv>
#include <cstring>

namespace opensandbox {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101U;
constexpr std::uint64_t kHigh = 0x8080808080808080U;

/// Bytes equal to zero, marked by their high bit.
std::uint64_t zero_bytes(std::uint64_t word) {
    return (word - kOnes) & ~word & kHigh;
}

/// Length of the prefix that needs no escape and is plain ASCII, eight bytes a step.
std::size_t plain_prefix(const char* text, std::size_t size) {
    std::size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text + at, 8);
        std::uint64_t special = (word & kHigh) | ((word - kOnes * 0x20) & ~word & kHigh) |
                                zero_bytes(word ^ (kOnes * '"')) |
                                zero_bytes(word ^ (kOnes * '\\'));
        if (special != 0) break;
    }
    for (; at < size; ++at) {
        auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') break;
    }
    return at;
}

bool is_continuation(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

/// What a lead byte asks for: total length and the range of the second byte (Unicode table 3-7).
struct Lead {
    std::size_t length = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
};

Lead lead_of(unsigned char byte) {
    if (byte >= 0xc2 && byte <= 0xdf) return {2, 0x80, 0xbf};
    if (byte == 0xe0) return {3, 0xa0, 0xbf};
    if (byte == 0xed) return {3, 0x80, 0x9f};
    if (byte >= 0xe1 && byte <= 0xef) return {3, 0x80, 0xbf};
    if (byte == 0xf0) return {4, 0x90, 0xbf};
    if (byte >= 0xf1 && byte <= 0xf3) return {4, 0x80, 0xbf};
    if (byte == 0xf4) return {4, 0x80, 0x8f};
    return {};
}

/// Length of the character at the start when well formed, else of the ill-formed part.
std::size_t character_length(std::string_view text, bool& well_formed) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    Lead lead = lead_of(byte(0));
    well_formed = false;
    if (lead.length == 0 || text.size() < 2 || byte(1) < lead.low || byte(1) > lead.high) return 1;
    for (std::size_t i = 2; i < lead.length; ++i) {
        if (i >= text.size() || !is_continuation(byte(i))) return i;
    }
    well_formed = true;
    return lead.length;
}

void append_escaped(std::string& out, char c) {
    static constexpr char kDigits[] = "0123456789abcdef";
    switch (c) {
        case '"': out += "\\\""; return;
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        default: break;
    }
    out += "\\u00";
    out += kDigits[(static_cast<unsigned char>(c) >> 4) & 15];
    out += kDigits[static_cast<unsigned char>(c) & 15];
}

/// Length of the prefix that is plain ASCII, eight bytes a step.
std::size_t ascii_prefix(const char* text, std::size_t size) {
    std::size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text + at, 8);
        if ((word & kHigh) != 0) break;
    }
    while (at < size && static_cast<unsigned char>(text[at]) < 0x80)
        ++at;
    return at;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
    while (true) {
        bytes.remove_prefix(ascii_prefix(bytes.data(), bytes.size()));
        if (bytes.empty()) return true;
        bool well_formed = false;
        std::size_t length = character_length(bytes, well_formed);
        if (!well_formed) return false;
        bytes.remove_prefix(length);
    }
}

void append_json_string(std::string& out, std::string_view bytes) {
    out += '"';
    while (!bytes.empty()) {
        std::size_t plain = plain_prefix(bytes.data(), bytes.size());
        out += bytes.substr(0, plain);
        bytes.remove_prefix(plain);
        if (bytes.empty()) break;
        if (static_cast<unsigned char>(bytes.front()) < 0x80) {
            append_escaped(out, bytes.front());
            bytes.remove_prefix(1);
            continue;
        }
        bool well_formed = false;
        std::size_t length = character_length(bytes, well_formed);
        if (well_formed) {
            out += bytes.substr(0, length);
        } else {
            out += "\xef\xbf\xbd";
        }
        bytes.remove_prefix(length);
    }
    out += '"';
}

void append_integer(std::string& out, std::int64_t number) {
    char digits[24];
    auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.append(digits, static_cast<std::size_t>(end - digits));
}

std::size_t incomplete_utf8_tail(std::string_view bytes) {
    for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
        auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
        if (is_continuation(byte)) continue;
        Lead lead = lead_of(byte);
        if (lead.length <= back) return 0;
        if (back >= 2) {
            auto second = static_cast<unsigned char>(bytes[bytes.size() - back + 1]);
            if (second < lead.low || second > lead.high) return 0;
        }
        return back;
    }
    return 0;
}

}  // namespace opensandbox
