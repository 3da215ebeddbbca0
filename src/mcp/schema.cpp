#include "mcp/schema.hpp"

#include <cmath>

namespace opensandbox::mcp::schema {

namespace {

json::object of_type(std::string_view type) {
    json::object out;
    out["type"] = type;
    return out;
}

json::object described(json::object schema, std::string_view description) {
    if (!description.empty()) schema["description"] = description;
    return schema;
}

using Problem = std::optional<std::string>;

Problem check(const json::value& value, const json::object& schema, const std::string& where);

Problem refuse(const std::string& where, std::string_view expected) {
    return (where.empty() ? std::string("arguments") : where) + ": " + std::string(expected);
}

std::string below(const std::string& where, std::string_view name) {
    return where.empty() ? std::string(name) : where + "." + std::string(name);
}

bool is_whole(const json::value& value) {
    if (value.is_int64() || value.is_uint64()) return true;
    return value.is_double() && std::trunc(value.get_double()) == value.get_double();
}

bool has_type(const json::value& value, std::string_view type) {
    if (type == "string") return value.is_string();
    if (type == "integer") return is_whole(value);
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_bool();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    return type == "null" && value.is_null();
}

std::string_view article(std::string_view type) {
    if (type == "string") return "a string";
    if (type == "integer") return "a whole number";
    if (type == "number") return "a number";
    if (type == "boolean") return "true or false";
    if (type == "array") return "an array";
    if (type == "object") return "an object";
    return "null";
}

Problem check_any(const json::value& value, const json::array& choices, const std::string& where) {
    Problem first;
    for (const json::value& choice : choices) {
        Problem found = check(value, choice.as_object(), where);
        if (!found) return {};
        if (!first) first = std::move(found);
    }
    // The last choice is null, which needs no mention.
    return first;
}

Problem check_enum(const json::value& value, const json::array& words, const std::string& where) {
    std::string list;
    for (const json::value& word : words) {
        if (word == value) return {};
        if (!list.empty()) list += ", ";
        list += json::serialize(word);
    }
    return refuse(where, "expected one of " + list);
}

Problem check_range(const json::value& value, const json::object& schema,
                    const std::string& where) {
    const auto low = schema.if_contains("minimum");
    const auto high = schema.if_contains("maximum");
    const double number = value.to_number<double>();
    if ((low == nullptr || number >= low->to_number<double>()) &&
        (high == nullptr || number <= high->to_number<double>())) {
        return {};
    }
    std::string accepted = "expected a number";
    if (low != nullptr) accepted += " from " + json::serialize(*low);
    if (high != nullptr) accepted += " to " + json::serialize(*high);
    return refuse(where, accepted);
}

std::string names_of(const json::object& properties) {
    std::string names;
    for (const auto& [name, schema] : properties) {
        if (!names.empty()) names += ", ";
        names += std::string(name);
    }
    return names;
}

Problem check_members(const json::object& value, const json::object& schema,
                      const std::string& where) {
    if (const auto* required = schema.if_contains("required")) {
        for (const json::value& name : required->as_array()) {
            if (!value.contains(name.as_string())) {
                return refuse(below(where, name.as_string()), "is required");
            }
        }
    }
    const json::value* properties = schema.if_contains("properties");
    const json::value* others = schema.if_contains("additionalProperties");
    for (const auto& [name, member] : value) {
        const std::string path = below(where, name);
        const json::value* known = properties ? properties->as_object().if_contains(name) : nullptr;
        if (known == nullptr && others != nullptr && others->is_object()) known = others;
        if (known != nullptr) {
            if (Problem found = check(member, known->as_object(), path)) return found;
        } else if (properties != nullptr && !(others != nullptr && others->is_bool())) {
            return refuse(path, "is unknown; known are " + names_of(properties->as_object()));
        }
    }
    return {};
}

Problem check(const json::value& value, const json::object& schema, const std::string& where) {
    if (const auto* any = schema.if_contains("anyOf")) {
        return check_any(value, any->as_array(), where);
    }
    if (const auto* type = schema.if_contains("type")) {
        const std::string_view name = type->as_string();
        if (!has_type(value, name)) {
            return refuse(where, "expected " + std::string(article(name)));
        }
    }
    if (const auto* words = schema.if_contains("enum")) {
        if (Problem found = check_enum(value, words->as_array(), where)) return found;
    }
    if (value.is_number()) return check_range(value, schema, where);
    if (value.is_object()) return check_members(value.get_object(), schema, where);
    const auto* items = schema.if_contains("items");
    if (value.is_array() && items != nullptr) {
        std::size_t index = 0;
        for (const json::value& item : value.get_array()) {
            const std::string path = where + "[" + std::to_string(index++) + "]";
            if (Problem found = check(item, items->as_object(), path)) return found;
        }
    }
    return {};
}

}  // namespace

Object& Object::required(std::string_view name, json::object schema, std::string_view description) {
    properties_[name] = described(std::move(schema), description);
    required_.emplace_back(name);
    return *this;
}

Object& Object::optional(std::string_view name, json::object schema, json::value standard,
                         std::string_view description) {
    schema["default"] = std::move(standard);
    properties_[name] = described(std::move(schema), description);
    return *this;
}

Object& Object::nullable(std::string_view name, json::object schema, std::string_view description) {
    return optional(name, or_null(std::move(schema)), nullptr, description);
}

Object& Object::possible(std::string_view name, json::object schema, std::string_view description) {
    properties_[name] = described(std::move(schema), description);
    return *this;
}

json::object Object::build(bool open) const {
    json::object out = of_type("object");
    out["properties"] = properties_;
    if (!required_.empty()) out["required"] = required_;
    if (open) out["additionalProperties"] = true;
    return out;
}

json::object text() {
    return of_type("string");
}

json::object integer() {
    return of_type("integer");
}

json::object integer(std::int64_t low, std::int64_t high) {
    json::object out = integer();
    out["minimum"] = low;
    out["maximum"] = high;
    return out;
}

json::object number() {
    return of_type("number");
}

json::object boolean() {
    return of_type("boolean");
}

json::object time() {
    json::object out = text();
    out["format"] = "date-time";
    return out;
}

json::object one_of(std::initializer_list<std::string_view> words) {
    json::object out = text();
    json::array list;
    for (std::string_view word : words)
        list.emplace_back(word);
    out["enum"] = std::move(list);
    return out;
}

json::object list_of(json::object items) {
    json::object out = of_type("array");
    out["items"] = std::move(items);
    return out;
}

json::object map_of_text() {
    json::object out = of_type("object");
    out["additionalProperties"] = text();
    return out;
}

json::object or_null(json::object schema) {
    json::array choices;
    choices.emplace_back(std::move(schema));
    choices.emplace_back(of_type("null"));
    json::object out;
    out["anyOf"] = std::move(choices);
    return out;
}

std::optional<std::string> problem(const json::value& document, const json::object& schema) {
    return check(document, schema, {});
}

}  // namespace opensandbox::mcp::schema
