#pragma once

#include <boost/json.hpp>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>
#include <string>
#include <string_view>

/// JSON Schema (2020-12) as far as the documents of specs/ use it.
namespace opensandbox::test_support {

/// Checks values against schemas of one document, `#/...` references included. A keyword that it
/// does not know is a failure, so that no rule is passed over.
class JsonSchema {
  public:
    explicit JsonSchema(const boost::json::value& document) : document_(document) {}

    /// The object that a local reference leads to, or the object itself.
    [[nodiscard]] const boost::json::object& resolve(const boost::json::value& node) const {
        const boost::json::object& object = node.as_object();
        const auto* reference = object.if_contains("$ref");
        if (!reference) return object;
        return resolve(document_.at_pointer(std::string_view(reference->as_string()).substr(1)));
    }

    /// What is wrong with a value, empty when nothing is; `place` is where it stands.
    [[nodiscard]] std::string check(const boost::json::value& schema,
                                    const boost::json::value& value,
                                    const std::string& place) const {
        if (schema.is_bool()) return schema.as_bool() ? "" : place + ": not allowed here";
        for (const auto& [keyword, rule] : schema.as_object()) {
            std::string wrong = check_keyword(schema.as_object(), keyword, rule, value, place);
            if (!wrong.empty()) return wrong;
        }
        return {};
    }

  private:
    using Value = boost::json::value;

    std::string check_keyword(const boost::json::object& schema, std::string_view keyword,
                              const Value& rule, const Value& value,
                              const std::string& place) const {
        static const std::set<std::string_view> kSilent{"description", "examples", "default",
                                                        "format", "writeOnly"};
        const auto fails = [&](bool holds) {
            return holds ? std::string()
                         : place + ": " + boost::json::serialize(value) + " breaks " +
                               std::string(keyword) + " " + boost::json::serialize(rule);
        };
        if (keyword == "$ref") return check(resolve(schema), value, place);
        if (keyword == "type") return fails(has_type(rule, value));
        if (keyword == "const") return fails(rule == value);
        if (keyword == "enum") {
            return fails(std::ranges::find(rule.as_array(), value) != rule.as_array().end());
        }
        if (keyword == "allOf") {
            for (const Value& part : rule.as_array()) {
                if (std::string wrong = check(part, value, place); !wrong.empty()) return wrong;
            }
            return {};
        }
        if (keyword == "oneOf" || keyword == "anyOf") {
            const auto fitting = std::ranges::count_if(rule.as_array(), [&](const Value& part) {
                return check(part, value, place).empty();
            });
            return fails(keyword == "oneOf" ? fitting == 1 : fitting > 0);
        }
        if (keyword == "minimum" || keyword == "maximum") {
            if (!value.is_number()) return {};
            const double number = value.to_number<double>();
            const double bound = rule.to_number<double>();
            return fails(keyword == "minimum" ? number >= bound : number <= bound);
        }
        if (keyword == "minLength" || keyword == "pattern") {
            if (!value.is_string()) return {};
            const std::string text(value.as_string());
            if (keyword == "minLength") return fails(text.size() >= rule.to_number<std::size_t>());
            return fails(std::regex_search(text, std::regex(std::string(rule.as_string()))));
        }
        if (keyword == "minItems" || keyword == "maxItems") {
            if (!value.is_array()) return {};
            const std::size_t size = value.as_array().size();
            const auto bound = rule.to_number<std::size_t>();
            return fails(keyword == "minItems" ? size >= bound : size <= bound);
        }
        if (keyword == "items") return check_items(rule, value, place);
        if (keyword == "required" || keyword == "properties" || keyword == "additionalProperties") {
            return value.is_object() ? check_members(schema, keyword, rule, value, place)
                                     : std::string();
        }
        return kSilent.contains(keyword) ? std::string()
                                         : place + ": unknown keyword " + std::string(keyword);
    }

    static bool has_type(const Value& rule, const Value& value) {
        if (rule.is_array()) {
            return std::ranges::any_of(rule.as_array(),
                                       [&](const Value& one) { return has_type(one, value); });
        }
        const std::string_view type = rule.as_string();
        if (type == "object") return value.is_object();
        if (type == "array") return value.is_array();
        if (type == "string") return value.is_string();
        if (type == "boolean") return value.is_bool();
        if (type == "null") return value.is_null();
        if (type == "integer") return value.is_int64() || value.is_uint64();
        return type == "number" && value.is_number();
    }

    std::string check_items(const Value& rule, const Value& value, const std::string& place) const {
        if (!value.is_array()) return {};
        std::size_t at = 0;
        for (const Value& item : value.as_array()) {
            std::string wrong = check(rule, item, place + "/" + std::to_string(at++));
            if (!wrong.empty()) return wrong;
        }
        return {};
    }

    std::string check_members(const boost::json::object& schema, std::string_view keyword,
                              const Value& rule, const Value& value,
                              const std::string& place) const {
        const boost::json::object& object = value.as_object();
        if (keyword == "required") {
            for (const Value& name : rule.as_array()) {
                if (!object.contains(name.as_string())) {
                    return place + ": lacks " + std::string(name.as_string());
                }
            }
            return {};
        }
        const auto* known = schema.if_contains("properties");
        for (const auto& [name, member] : object) {
            const std::string where = place + "/" + std::string(name);
            const Value* of_name = known ? known->as_object().if_contains(name) : nullptr;
            if (keyword == "additionalProperties" && of_name) continue;
            if (keyword == "properties" && !of_name) continue;
            std::string wrong = check(of_name ? *of_name : rule, member, where);
            if (!wrong.empty()) return wrong;
        }
        return {};
    }

    const Value& document_;
};

}  // namespace opensandbox::test_support
