#pragma once

#include "json/document.hpp"

#include <optional>
#include <string>
#include <string_view>

/// JSON Schemas of tools: made, and checked against.
namespace opensandbox::mcp::schema {

/// Members of an object, in order. `description` of a member may be empty.
class Object {
  public:
    Object& required(std::string_view name, json::object schema, std::string_view description = {});
    Object& optional(std::string_view name, json::object schema, json::value standard,
                     std::string_view description = {});
    /// May be null or missing, which are the same.
    Object& nullable(std::string_view name, json::object schema, std::string_view description = {});
    /// May be missing and has no value then.
    Object& possible(std::string_view name, json::object schema, std::string_view description = {});
    /// `open`: members that are not named are let through.
    [[nodiscard]] json::object build(bool open = false) const;

  private:
    json::object properties_;
    json::array required_;
};

json::object text();
json::object integer();
json::object integer(std::int64_t low, std::int64_t high);
json::object number();
json::object boolean();
json::object time();
json::object one_of(std::initializer_list<std::string_view> words);
json::object list_of(json::object items);
json::object map_of_text();
/// The schema, or null.
json::object or_null(json::object schema);

/// What is wrong with a document, naming the member and the accepted form ("entries[0].path:
/// expected a string"); empty when nothing is. Knows what the functions above make: type, enum,
/// minimum, maximum, properties, required, additionalProperties, items, anyOf.
std::optional<std::string> problem(const json::value& document, const json::object& schema);

}  // namespace opensandbox::mcp::schema
