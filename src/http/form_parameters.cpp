#include "http/form_parameters.hpp"

#include "http/fields.hpp"
#include "http/message.hpp"

namespace opensandbox::http {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/// Takes a quoted string without its quotes off the front of `rest`.
std::string take_quoted(std::string_view& rest) {
    std::string text;
    std::size_t i = 1;
    for (; i < rest.size() && rest[i] != '"'; ++i) {
        bool escape =
            rest[i] == '\\' && i + 1 < rest.size() && (rest[i + 1] == '"' || rest[i + 1] == '\\');
        if (escape) ++i;
        text += rest[i];
    }
    rest.remove_prefix(i < rest.size() ? i + 1 : rest.size());
    return text;
}

std::string take_value(std::string_view& rest) {
    while (!rest.empty() && is_blank(rest.front()))
        rest.remove_prefix(1);
    if (!rest.empty() && rest.front() == '"') return take_quoted(rest);
    auto end = rest.find(';');
    std::string text(trim(rest.substr(0, end)));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
    return text;
}

/// `UTF-8'language'percent-encoded`; empty when it is something else.
std::optional<std::string> decode_extended(std::string_view text) {
    auto first = text.find('\'');
    if (first == std::string_view::npos) return std::nullopt;
    auto second = text.find('\'', first + 1);
    if (second == std::string_view::npos) return std::nullopt;
    if (!equal_ignoring_case(text.substr(0, first), "UTF-8")) return std::nullopt;
    return percent_decode(text.substr(second + 1));
}

}  // namespace

std::optional<std::string> form_parameter(std::string_view value, std::string_view name) {
    std::optional<std::string> plain;
    auto mark = value.find(';');
    std::string_view rest =
        mark == std::string_view::npos ? std::string_view() : value.substr(mark);
    while (!rest.empty()) {
        // Anything odd between two parameters is skipped.
        auto start = rest.find(';');
        if (start == std::string_view::npos) break;
        rest.remove_prefix(start + 1);
        auto end = rest.find_first_of("=;");
        if (end == std::string_view::npos) break;
        if (rest[end] == ';') continue;
        std::string_view key = trim(rest.substr(0, end));
        rest.remove_prefix(end + 1);
        std::string text = take_value(rest);
        if (equal_ignoring_case(key, name)) {
            if (!plain) plain = std::move(text);
        } else if (!key.empty() && key.back() == '*' &&
                   equal_ignoring_case(key.substr(0, key.size() - 1), name)) {
            if (auto extended = decode_extended(text)) return extended;
        }
    }
    return plain;
}

}  // namespace opensandbox::http
