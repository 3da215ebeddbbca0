#include "model/json_text.hpp"

#include <cstdint>
#include <cstdio>

namespace opensandbox::model {
namespace {

/// Length of the UTF-8 sequence at `at`, 0 when it is malformed (overlong, surrogate, truncated).
std::size_t sequence_length(std::string_view text, std::size_t at) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    unsigned char first = byte(at);
    if (first < 0x80) return 1;
    std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xc0) != 0x80) return 0;
    }
    unsigned char second = byte(at + 1);
    if (first == 0xe0 && second < 0xa0) return 0;
    if (first == 0xed && second > 0x9f) return 0;
    if (first == 0xf0 && second < 0x90) return 0;
    if (first == 0xf4 && second > 0x8f) return 0;
    return length;
}

void append_escape(std::string& out, unsigned char c) {
    switch (c) {
        case '"': out += "\\\""; return;
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        default: break;
    }
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", c);
    out += escape;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
    out += '"';
    std::size_t plain = 0;  // start of the run that needs no change
    for (std::size_t at = 0; at < text.size();) {
        auto c = static_cast<unsigned char>(text[at]);
        std::size_t length = sequence_length(text, at);
        bool escape = c < 0x20 || c == '"' || c == '\\' || c == 0x7f;
        if (length != 0 && !escape) {
            at += length;
            continue;
        }
        out += text.substr(plain, at - plain);
        if (escape) {
            append_escape(out, c);
        } else {
            out += "\xef\xbf\xbd";
        }
        plain = ++at;
    }
    out += text.substr(plain);
    out += '"';
}

std::string json_string(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

void append_json_map(std::string& out, const StringMap& map) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : map) {
        if (!first) out += ',';
        first = false;
        append_json_string(out, key);
        out += ':';
        append_json_string(out, value);
    }
    out += '}';
}

void append_json_list(std::string& out, const std::vector<std::string>& list) {
    out += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (i > 0) out += ',';
        append_json_string(out, list[i]);
    }
    out += ']';
}

}  // namespace opensandbox::model
