#include "json/document.hpp"

#include <algorithm>
#include <cmath>

namespace opensandbox::json {
namespace {

Error wrong_type(std::string_view name, std::string_view expected) {
    return {ErrorCode::invalid_argument, std::string(name) + ": must be " + std::string(expected)};
}

/// The parser makes infinities of numbers that are too large, which no JSON text can say again.
bool has_infinite(const value& document) {
    if (const double* number = document.if_double()) return !std::isfinite(*number);
    if (const array* items = document.if_array()) return std::ranges::any_of(*items, has_infinite);
    const object* members = document.if_object();
    return members && std::ranges::any_of(*members, [](const auto& member) {
               return has_infinite(member.value());
           });
}

}  // namespace

Result<value> parse(std::string_view text) {
    boost::json::parse_options options;
    options.max_depth = 64;
    boost::json::stream_parser parser({}, options);
    boost::system::error_code ec;
    std::size_t used = parser.write_some(text.data(), text.size(), ec);
    if (!ec) {
        std::string_view rest = text.substr(used);
        if (rest.find_first_not_of(" \t\r\n") != std::string_view::npos) {
            return Error(ErrorCode::invalid_argument,
                         "JSON: extra data at byte " + std::to_string(used));
        }
        parser.finish(ec);
    }
    if (ec) {
        return Error(ErrorCode::invalid_argument,
                     "JSON: " + ec.message() + " at byte " + std::to_string(used));
    }
    value document = parser.release();
    if (has_infinite(document)) return Error(ErrorCode::invalid_argument, "JSON: number too large");
    return document;
}

std::string serialize(const value& document) {
    return boost::json::serialize(document);
}

const value* find(const object& from, std::string_view name) {
    const value* member = from.if_contains(name);
    return member && !member->is_null() ? member : nullptr;
}

Result<std::optional<std::string>> get_string(const object& from, std::string_view name) {
    const value* member = find(from, name);
    if (!member) return std::optional<std::string>();
    if (!member->is_string()) return wrong_type(name, "a string");
    return std::optional<std::string>(std::string(member->get_string()));
}

Result<std::optional<std::int64_t>> get_integer(const object& from, std::string_view name) {
    const value* member = find(from, name);
    if (!member) return std::optional<std::int64_t>();
    boost::system::error_code ec;
    auto number = member->to_number<std::int64_t>(ec);
    if (ec) return wrong_type(name, "an integer");
    return std::optional<std::int64_t>(number);
}

Result<std::optional<double>> get_number(const object& from, std::string_view name) {
    const value* member = find(from, name);
    if (!member) return std::optional<double>();
    boost::system::error_code ec;
    auto number = member->to_number<double>(ec);
    if (ec) return wrong_type(name, "a number");
    return std::optional<double>(number);
}

Result<std::optional<bool>> get_bool(const object& from, std::string_view name) {
    const value* member = find(from, name);
    if (!member) return std::optional<bool>();
    if (!member->is_bool()) return wrong_type(name, "true or false");
    return std::optional<bool>(member->get_bool());
}

Result<std::optional<std::vector<std::string>>> get_strings(const object& from,
                                                            std::string_view name) {
    using List = std::vector<std::string>;
    const value* member = find(from, name);
    if (!member) return std::optional<List>();
    if (!member->is_array()) return wrong_type(name, "an array of strings");
    List list;
    for (const value& item : member->get_array()) {
        if (!item.is_string()) return wrong_type(name, "an array of strings");
        list.emplace_back(item.get_string());
    }
    return std::optional<List>(std::move(list));
}

Result<std::optional<std::vector<std::pair<std::string, std::string>>>> get_string_map(
    const object& from, std::string_view name) {
    using Map = std::vector<std::pair<std::string, std::string>>;
    const value* member = find(from, name);
    if (!member) return std::optional<Map>();
    if (!member->is_object()) return wrong_type(name, "an object of strings");
    Map map;
    for (const auto& [key, item] : member->get_object()) {
        if (!item.is_string())
            return wrong_type(std::string(name) + "." + std::string(key), "a string");
        map.emplace_back(std::string(key), std::string(item.get_string()));
    }
    return std::optional<Map>(std::move(map));
}

array string_array(const std::vector<std::string>& texts) {
    array made;
    for (const std::string& text : texts)
        made.emplace_back(text);
    return made;
}

}  // namespace opensandbox::json
