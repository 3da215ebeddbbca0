#include "base/log_text.hpp"

#include "base/json_string.hpp"

#include <algorithm>

namespace opensandbox::log {
namespace {

/// A character that must not be shown, by its length in bytes.
struct Hidden {
    std::size_t length = 0;  ///< 0: it may be shown
    unsigned code = 0;
};

bool is_hidden(unsigned code) {
    return code == 0x7f || (code >= 0x80 && code <= 0x9f) || code == 0x061c ||
           (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

/// Of well-formed UTF-8.
Hidden hidden_at(std::string_view text, std::size_t at) {
    auto byte = [&](std::size_t i) -> unsigned {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    Hidden found;
    if (byte(0) == 0x7f) {
        found = {1, 0x7f};
    } else if ((byte(0) & 0xe0) == 0xc0) {
        found = {2, (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f)};
    } else if ((byte(0) & 0xf0) == 0xe0) {
        found = {3, (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f)};
    }
    if (!is_hidden(found.code)) found.length = 0;
    return found;
}

void append_escape(std::string& out, unsigned code) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4)
        out += kDigits[(code >> shift) & 15];
}

bool is_plain(char c) {
    auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7f;
}

}  // namespace

void append_log_json(std::string& out, std::string_view json) {
    for (std::size_t at = 0; at < json.size();) {
        Hidden hidden = hidden_at(json, at);
        if (hidden.length == 0) {
            out += json[at++];
            continue;
        }
        append_escape(out, hidden.code);
        at += hidden.length;
    }
}

void append_log_string(std::string& out, std::string_view text) {
    if (std::ranges::all_of(text, is_plain)) return append_json_string(out, text);
    std::string escaped;
    append_json_string(escaped, text);
    append_log_json(out, escaped);
}

void append_log_sentence(std::string& out, std::string_view text) {
    if (std::ranges::all_of(text, is_plain)) {
        out += text;
        return;
    }
    std::string quoted;
    append_log_string(quoted, text);
    out.append(quoted, 1, quoted.size() - 2);
}

}  // namespace opensandbox::log
