#include "egress/vault/value_encoding.hpp"

#include "base/json_string.hpp"
#include "egress/vault/secret.hpp"

namespace opensandbox::egress {
namespace {

bool is_unreserved(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/// Written once, into memory that is large enough: no copy is left behind.
std::string encode(std::string_view value, bool form) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    out.reserve(value.size() * 3);
    for (const char c : value) {
        if (is_unreserved(c)) {
            out += c;
        } else if (form && c == ' ') {
            out += '+';
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += '%';
            out += kDigits[byte >> 4];
            out += kDigits[byte & 15];
        }
    }
    return out;
}

}  // namespace

std::string encode_for_url(std::string_view value) {
    return encode(value, false);
}

std::string encode_for_form(std::string_view value) {
    return encode(value, true);
}

std::string encode_for_json(std::string_view value) {
    std::string text;
    text.reserve(value.size() * 6 + 2);
    append_json_string(text, value);
    std::string inside;
    inside.reserve(text.size());
    inside.assign(text, 1, text.size() - 2);
    wipe(text);
    return inside;
}

}  // namespace opensandbox::egress
