#pragma once

#include "json/document.hpp"

#include <initializer_list>
#include <string_view>
#include <utility>

/// Parts of an OpenAPI v3 schema as custom resources use it.
namespace opensandbox::controller::schema {

/// One member of an object: its name and its schema.
using Member = std::pair<std::string_view, json::object>;

json::object text(std::string_view description = {});
/// Only these words.
json::object word(std::initializer_list<std::string_view> words, std::string_view fallback = {});
json::object time();
json::object flag();
/// `least`: the smallest that is allowed; -1: any.
json::object int32(int least = 0);
json::object int64();
/// A count, or a part of all: "25%".
json::object count_or_percent();
json::object list(json::object of);
/// A list whose elements are told apart by one member.
json::object keyed_list(std::string_view key, json::object of);
json::object object(std::initializer_list<Member> members,
                    std::initializer_list<std::string_view> required = {});
/// An object of somebody else's kind, or null: kept as it is. It has a type, so that rules can name
/// it.
json::object foreign_object();
/// Any JSON.
json::object anything();

/// `schema` with a default.
json::object with_default(json::object schema, json::value value);
/// `schema` with a rule in CEL and what is said to who breaks it.
json::object with_rule(json::object schema, std::string_view rule, std::string_view message);

}  // namespace opensandbox::controller::schema
