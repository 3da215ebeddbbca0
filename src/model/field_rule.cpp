#include "model/field_rule.hpp"

#include "json/document.hpp"
#include "model/timestamp.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace opensandbox::model {
namespace {

using json::value;

/// Inputs quoted in errors are cut to this, so that an error is never larger than its cause.
constexpr std::size_t kQuotedInput = 4096;

std::string quoted(const value& given) {
    std::string text = json::serialize(given);
    return text.size() <= kQuotedInput ? text : json_string("(too long to quote)");
}

std::string ctx(std::string_view key, std::int64_t number) {
    return "{" + json_string(key) + ":" + std::to_string(number) + "}";
}

FieldError error_of(std::string type, const Location& at, std::string message, const value& given,
                    std::string context = {}) {
    return {std::move(type), at, std::move(message), quoted(given), std::move(context)};
}

std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
}

void check_text(const value& given, const FieldRule& rule, const Location& at,
                FieldErrors& errors) {
    if (!given.is_string()) {
        errors.push_back(error_of("string_type", at, "Input should be a valid string", given));
        return;
    }
    std::string_view text = given.get_string();
    auto length = static_cast<std::int64_t>(characters(text));
    if (rule.minimum && length < *rule.minimum) {
        std::string unit = *rule.minimum == 1 ? " character" : " characters";
        errors.push_back(
            error_of("string_too_short", at,
                     "String should have at least " + std::to_string(*rule.minimum) + unit, given,
                     ctx("min_length", *rule.minimum)));
    } else if (rule.maximum && length > *rule.maximum) {
        errors.push_back(
            error_of("string_too_long", at,
                     "String should have at most " + std::to_string(*rule.maximum) + " characters",
                     given, ctx("max_length", *rule.maximum)));
    } else if (rule.pattern && !rule.pattern->matches(text)) {
        std::string shown(rule.pattern->shown);
        errors.push_back(error_of("string_pattern_mismatch", at,
                                  "String should match pattern '" + shown + "'", given,
                                  "{\"pattern\":" + json_string(shown) + "}"));
    }
}

void check_integer(const value& given, const FieldRule& rule, const Location& at,
                   FieldErrors& errors) {
    FieldError why;
    auto number = lax_integer(given, why);
    if (!number) {
        errors.push_back(error_of(why.type, at, why.msg, given));
    } else if (rule.minimum && *number < *rule.minimum) {
        errors.push_back(
            error_of("greater_than_equal", at,
                     "Input should be greater than or equal to " + std::to_string(*rule.minimum),
                     given, ctx("ge", *rule.minimum)));
    } else if (rule.maximum && *number > *rule.maximum) {
        errors.push_back(
            error_of("less_than_equal", at,
                     "Input should be less than or equal to " + std::to_string(*rule.maximum),
                     given, ctx("le", *rule.maximum)));
    }
}

std::optional<bool> boolean_of(const value& given) {
    if (given.is_bool()) return given.get_bool();
    if (given.is_string()) return lax_boolean(given.get_string());
    boost::system::error_code ec;
    auto number = given.to_number<std::int64_t>(ec);
    if (ec || number < 0 || number > 1) return std::nullopt;
    return number == 1;
}

void check_boolean(const value& given, const Location& at, FieldErrors& errors) {
    if (boolean_of(given)) return;
    if (given.is_string() || given.is_number()) {
        errors.push_back(error_of("bool_parsing", at,
                                  "Input should be a valid boolean, unable to interpret input",
                                  given));
    } else {
        errors.push_back(error_of("bool_type", at, "Input should be a valid boolean", given));
    }
}

void check_timestamp(const value& given, const Location& at, FieldErrors& errors) {
    if (!given.is_string() && !given.is_number()) {
        errors.push_back(error_of("datetime_type", at, "Input should be a valid datetime", given));
        return;
    }
    std::string why;
    bool parsed = given.is_string()
                      ? parse_timestamp(given.get_string(), why).has_value()
                      : timestamp_from_number(given.to_number<double>(), why).has_value();
    if (parsed) return;
    errors.push_back(error_of("datetime_parsing", at, "Input should be a valid datetime, " + why,
                              given, "{\"error\":" + json_string(why) + "}"));
}

void forbid_unknown(const value& given, const FieldRule& rule, const Location& at,
                    FieldErrors& errors) {
    if (!rule.closed || !given.is_object()) return;
    for (const auto& [key, item] : given.get_object()) {
        if (item.is_null()) continue;  // absent, as newer clients may say it
        bool known = std::ranges::any_of(rule.members, [&](const FieldRule& member) {
            return member.name == std::string_view(key) ||
                   snake_case(member.name) == std::string_view(key);
        });
        if (known) continue;
        errors.push_back(error_of("extra_forbidden", within(at, std::string(key)),
                                  "Extra inputs are not permitted", item));
    }
}

void check_list(const value& given, const FieldRule& rule, const Location& at,
                FieldErrors& errors) {
    if (!given.is_array()) {
        errors.push_back(error_of("list_type", at, "Input should be a valid list", given));
        return;
    }
    const auto& items = given.get_array();
    auto size = static_cast<std::int64_t>(items.size());
    if (rule.minimum && size < *rule.minimum) {
        std::string unit = *rule.minimum == 1 ? " item" : " items";
        std::string minimum = std::to_string(*rule.minimum);
        errors.push_back(error_of("too_short", at,
                                  "List should have at least " + minimum + unit +
                                      " after validation, not " + std::to_string(size),
                                  given,
                                  "{\"field_type\":\"List\",\"min_length\":" + minimum +
                                      ",\"actual_length\":" + std::to_string(size) + "}"));
    }
    if (rule.maximum && size > *rule.maximum) {
        std::string maximum = std::to_string(*rule.maximum);
        errors.push_back({"too_long", at,
                          "List should have at most " + maximum + " items after validation, not " +
                              std::to_string(size),
                          json_string("(too long to quote)"),
                          "{\"field_type\":\"List\",\"max_length\":" + maximum +
                              ",\"actual_length\":" + std::to_string(size) + "}"});
        return;
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        Location item = within(at, static_cast<std::int64_t>(i));
        if (rule.kind == FieldKind::integer_list) {
            check_field(items[i], rule.members.front(), item, errors);
        } else if (rule.kind == FieldKind::object_list) {
            check_object(items[i], rule.members, item, errors);
            forbid_unknown(items[i], rule, item, errors);
        } else if (!items[i].is_string()) {
            errors.push_back(
                error_of("string_type", item, "Input should be a valid string", items[i]));
        }
    }
}

void check_map(const value& given, const FieldRule& rule, const Location& at, FieldErrors& errors) {
    if (!given.is_object()) {
        errors.push_back(error_of("dict_type", at, "Input should be a valid dictionary", given));
        return;
    }
    bool nullable = rule.kind == FieldKind::nullable_text_map;
    for (const auto& [key, item] : given.get_object()) {
        if (item.is_string() || (nullable && item.is_null())) continue;
        errors.push_back(error_of("string_type", within(at, std::string(key)),
                                  "Input should be a valid string", item));
    }
}

}  // namespace

std::string snake_case(std::string_view camel) {
    std::string snake;
    for (char c : camel) {
        if (c >= 'A' && c <= 'Z') {
            snake += '_';
            snake += static_cast<char>(c - 'A' + 'a');
        } else {
            snake += c;
        }
    }
    return snake;
}

Location within(const Location& at, LocationPart part) {
    Location deeper = at;
    deeper.push_back(std::move(part));
    return deeper;
}

FieldError value_error(const Location& at, std::string_view message, std::string input) {
    if (input.size() > kQuotedInput) input = json_string("(too long to quote)");
    return {"value_error", at, "Value error, " + std::string(message), std::move(input),
            "{\"error\":{}}"};
}

void check_field(const value& given, const FieldRule& rule, const Location& at,
                 FieldErrors& errors) {
    if (!rule.unserved.empty()) {
        errors.push_back(value_error(at, std::string(rule.name) + " " + std::string(rule.unserved),
                                     quoted(given)));
        return;
    }
    switch (rule.kind) {
        case FieldKind::text: return check_text(given, rule, at, errors);
        case FieldKind::integer: return check_integer(given, rule, at, errors);
        case FieldKind::boolean: return check_boolean(given, at, errors);
        case FieldKind::timestamp: return check_timestamp(given, at, errors);
        case FieldKind::text_list:
        case FieldKind::integer_list:
        case FieldKind::object_list: return check_list(given, rule, at, errors);
        case FieldKind::text_map:
        case FieldKind::nullable_text_map: return check_map(given, rule, at, errors);
        case FieldKind::object:
            check_object(given, rule.members, at, errors);
            forbid_unknown(given, rule, at, errors);
            return;
    }
}

void check_object(const value& body, std::span<const FieldRule> rules, const Location& at,
                  FieldErrors& errors) {
    if (!body.is_object()) {
        errors.push_back(
            error_of("model_attributes_type", at,
                     "Input should be a valid dictionary or object to extract fields from", body));
        return;
    }
    const json::object& fields = body.get_object();
    for (const FieldRule& rule : rules) {
        Location here = within(at, std::string(rule.name));
        const value* given = fields.if_contains(rule.name);
        if (!given) given = fields.if_contains(snake_case(rule.name));
        if (!given) {
            if (rule.required) errors.push_back(error_of("missing", here, "Field required", body));
        } else if (!given->is_null() || !rule.nullable || rule.required) {
            check_field(*given, rule, here, errors);
        }
    }
}

bool has_field(const json::object& from, std::string_view name) {
    return from.if_contains(name) || from.if_contains(snake_case(name));
}

const value* find_field(const json::object& from, std::string_view name) {
    const value* given = from.if_contains(name);
    if (!given) given = from.if_contains(snake_case(name));
    return given && !given->is_null() ? given : nullptr;
}

std::optional<std::string> read_text(const json::object& from, std::string_view name) {
    const value* given = find_field(from, name);
    if (!given || !given->is_string()) return std::nullopt;
    return std::string(given->get_string());
}

std::optional<std::int64_t> read_integer(const json::object& from, std::string_view name) {
    const value* given = find_field(from, name);
    if (!given) return std::nullopt;
    FieldError ignored;
    return lax_integer(*given, ignored);
}

bool read_boolean(const json::object& from, std::string_view name, bool fallback) {
    const value* given = find_field(from, name);
    if (!given) return fallback;
    return boolean_of(*given).value_or(fallback);
}

std::optional<std::vector<std::string>> read_list(const json::object& from, std::string_view name) {
    const value* given = find_field(from, name);
    if (!given || !given->is_array()) return std::nullopt;
    std::vector<std::string> list;
    for (const value& item : given->get_array()) {
        if (item.is_string()) list.emplace_back(item.get_string());
    }
    return list;
}

std::vector<std::int64_t> read_integers(const json::object& from, std::string_view name) {
    const value* given = find_field(from, name);
    std::vector<std::int64_t> list;
    if (!given || !given->is_array()) return list;
    FieldError ignored;
    for (const value& item : given->get_array())
        list.push_back(lax_integer(item, ignored).value_or(0));
    return list;
}

std::optional<StringMap> read_map(const json::object& from, std::string_view name) {
    const value* given = find_field(from, name);
    if (!given || !given->is_object()) return std::nullopt;
    StringMap map;
    for (const auto& [key, item] : given->get_object()) {
        if (item.is_string()) map.emplace_back(std::string(key), std::string(item.get_string()));
    }
    return map;
}

}  // namespace opensandbox::model
