#include "json/document.hpp"
#include "model/field_rule.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace opensandbox::model {
namespace {

std::int64_t cut_to_range(double number) {
    constexpr double kLimit = 9.2e18;
    if (number > kLimit) return std::numeric_limits<std::int64_t>::max();
    if (number < -kLimit) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(number);
}

}  // namespace

std::optional<std::int64_t> lax_integer(std::string_view text) {
    auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!text.empty() && blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && blank(text.back()))
        text.remove_suffix(1);
    bool negative = !text.empty() && text.front() == '-';
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
    if (auto dot = text.find('.'); dot != std::string_view::npos) {
        if (dot == 0 || text.find_first_not_of('0', dot + 1) != std::string_view::npos) {
            return std::nullopt;
        }
        text = text.substr(0, dot);
    }
    std::string digits;
    for (std::size_t i = 0; i < text.size(); ++i) {
        bool between = i > 0 && i + 1 < text.size() && text[i - 1] != '_';
        if (text[i] == '_' && between) continue;
        if (text[i] < '0' || text[i] > '9') return std::nullopt;
        digits += text[i];
    }
    if (digits.empty() || digits.size() > 4300) return std::nullopt;
    std::int64_t number = 0;
    auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (problem == std::errc::result_out_of_range) {
        return negative ? std::numeric_limits<std::int64_t>::min()
                        : std::numeric_limits<std::int64_t>::max();
    }
    return negative ? -number : number;
}

std::optional<std::int64_t> lax_integer(const json::value& value, FieldError& why) {
    if (value.is_bool()) return value.get_bool() ? 1 : 0;
    if (value.is_int64()) return value.get_int64();
    if (value.is_uint64()) return std::numeric_limits<std::int64_t>::max();
    if (value.is_double()) {
        double number = value.get_double();
        if (std::isfinite(number) && number == std::floor(number)) return cut_to_range(number);
        why.type = "int_from_float";
        why.msg = "Input should be a valid integer, got a number with a fractional part";
        return std::nullopt;
    }
    if (value.is_string()) {
        if (auto number = lax_integer(std::string_view(value.get_string()))) return number;
        why.type = "int_parsing";
        why.msg = "Input should be a valid integer, unable to parse string as an integer";
        return std::nullopt;
    }
    why.type = "int_type";
    why.msg = "Input should be a valid integer";
    return std::nullopt;
}

std::optional<bool> lax_boolean(std::string_view text) {
    std::string lower;
    for (char c : text)
        lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (std::string_view yes : {"true", "1", "yes", "on", "t", "y"}) {
        if (lower == yes) return true;
    }
    for (std::string_view no : {"false", "0", "no", "off", "f", "n"}) {
        if (lower == no) return false;
    }
    return std::nullopt;
}

}  // namespace opensandbox::model
