#include "cli/document.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace opensandbox::cli {

namespace {

void write_node(const json::value& from, std::size_t indent, bool after_key, std::string& out);

/// Words that YAML 1.1 reads as booleans or null, in lower case.
constexpr std::array kWords{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"};

bool is_reserved_word(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return std::ranges::find(kWords, lower) != kWords.end();
}

/// Whether a reader could take the text for a number, a date or a sexagesimal ("0:10:00").
bool looks_numeric(std::string_view text) {
    const char first = text[0];
    if (first == '.' && text.size() > 1) return true;  // .5, .inf, .nan
    const bool sign = first == '+' || first == '-';
    if (sign && text.size() > 1 && text[1] == '.') return true;
    const std::size_t at = sign ? 1 : 0;
    if (at >= text.size() || text[at] < '0' || text[at] > '9') return false;
    // Letters other than exponents, hexadecimal digits and date marks make it plain text.
    return text.find_first_not_of("0123456789abcdefABCDEFxXoOTtzZ_+-.: ", at) ==
           std::string_view::npos;
}

bool has_control(std::string_view text) {
    return std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

bool needs_quotes(std::string_view text) {
    constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`=<";
    if (text.empty() || text.front() == ' ' || text.back() == ' ') return true;
    if (is_reserved_word(text) || looks_numeric(text)) return true;
    const char first = text[0];
    if (kIndicators.find(first) != std::string_view::npos) {
        // "-x", "?x" and ":x" are plain; a lone mark or one before a space is not.
        const bool may_be_plain = first == '-' || first == '?' || first == ':';
        if (!may_be_plain || text.size() == 1 || text[1] == ' ' || text.starts_with("---")) {
            return true;
        }
    }
    return text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos ||
           text.back() == ':';
}

std::string double_quoted(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string out = "\"";
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        switch (c) {
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            case '\t': out += "\\t"; break;
            default:
                if (byte < ' ' || byte == 0x7f) {
                    out += "\\x";
                    out += kHex[byte >> 4];
                    out += kHex[byte & 15];
                } else {
                    out += c;
                }
        }
    }
    return out + "\"";
}

std::string scalar_text(std::string_view text) {
    if (has_control(text)) return double_quoted(text);
    if (!needs_quotes(text)) return std::string(text);
    std::string out = "'";
    for (char c : text) {
        out += c;
        if (c == '\'') out += c;
    }
    return out + "'";
}

std::string scalar(const json::value& from) {
    if (from.is_string()) return scalar_text(from.get_string());
    if (from.is_double()) return to_number_text(from.get_double());
    return json::serialize(from);
}

void write_object(const json::object& object, std::size_t indent, bool first_in_line,
                  std::string& out) {
    std::vector<std::pair<std::string_view, const json::value*>> members;
    for (const auto& member : object)
        members.emplace_back(member.key(), &member.value());
    std::ranges::sort(members, {}, [](const auto& member) { return member.first; });
    for (const auto& [name, value] : members) {
        if (!first_in_line) out.append(indent, ' ');
        first_in_line = false;
        out += scalar_text(name) + ":";
        write_node(*value, indent, true, out);
    }
}

/// Lists stand at the indent of the key they belong to, as the reference program writes them.
void write_array(const json::array& array, std::size_t indent, bool first_in_line,
                 std::string& out) {
    for (const auto& item : array) {
        if (!first_in_line) out.append(indent, ' ');
        first_in_line = false;
        out += "-";
        write_node(item, indent + 2, false, out);
    }
}

void write_node(const json::value& from, std::size_t indent, bool after_key, std::string& out) {
    const auto* object = from.if_object();
    const auto* array = from.if_array();
    if (object && !object->empty()) {
        out += after_key ? "\n" : " ";
        write_object(*object, after_key ? indent + 2 : indent, !after_key, out);
    } else if (array && !array->empty()) {
        out += after_key ? "\n" : " ";
        write_array(*array, indent, !after_key, out);
    } else {
        out += object ? " {}\n" : array ? " []\n" : " " + scalar(from) + "\n";
    }
}

}  // namespace

std::string to_yaml_text(const json::value& document) {
    std::string out;
    if (const auto* object = document.if_object(); object && !object->empty()) {
        write_object(*object, 0, false, out);
    } else if (const auto* array = document.if_array(); array && !array->empty()) {
        write_array(*array, 0, false, out);
    } else {
        write_node(document, 0, false, out);
        out.erase(0, 1);
    }
    return out;
}

}  // namespace opensandbox::cli
