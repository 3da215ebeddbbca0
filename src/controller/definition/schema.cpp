#include "controller/definition/schema.hpp"

namespace opensandbox::controller::schema {
namespace {

json::array names(std::initializer_list<std::string_view> texts) {
    json::array list;
    for (const std::string_view text : texts)
        list.emplace_back(text);
    return list;
}

}  // namespace

json::object text(std::string_view description) {
    json::object schema{{"type", "string"}};
    if (!description.empty()) schema["description"] = description;
    return schema;
}

json::object word(std::initializer_list<std::string_view> words, std::string_view fallback) {
    json::object schema = text();
    schema["enum"] = names(words);
    if (!fallback.empty()) schema["default"] = fallback;
    return schema;
}

json::object time() {
    return {{"type", "string"}, {"format", "date-time"}};
}

json::object flag() {
    return {{"type", "boolean"}};
}

json::object int32(int least) {
    json::object schema{{"type", "integer"}, {"format", "int32"}};
    if (least >= 0) schema["minimum"] = least;
    return schema;
}

json::object int64() {
    return {{"type", "integer"}, {"format", "int64"}};
}

json::object count_or_percent() {
    json::array either{json::object{{"type", "integer"}}, json::object{{"type", "string"}}};
    json::object schema{{"x-kubernetes-int-or-string", true}};
    schema["anyOf"] = std::move(either);
    return schema;
}

json::object list(json::object of) {
    json::object schema{{"type", "array"}};
    schema["items"] = std::move(of);
    return schema;
}

json::object keyed_list(std::string_view key, json::object of) {
    json::object schema = list(std::move(of));
    schema["x-kubernetes-list-type"] = "map";
    schema["x-kubernetes-list-map-keys"] = names({key});
    return schema;
}

json::object object(std::initializer_list<Member> members,
                    std::initializer_list<std::string_view> required) {
    json::object properties;
    for (const auto& [name, schema] : members)
        properties[name] = schema;
    json::object made{{"type", "object"}};
    made["properties"] = std::move(properties);
    if (required.size() > 0) made["required"] = names(required);
    return made;
}

json::object foreign_object() {
    return {{"type", "object"}, {"nullable", true}, {"x-kubernetes-preserve-unknown-fields", true}};
}

json::object anything() {
    return {{"x-kubernetes-preserve-unknown-fields", true}};
}

json::object with_default(json::object schema, json::value value) {
    schema["default"] = std::move(value);
    return schema;
}

json::object with_rule(json::object schema, std::string_view rule, std::string_view message) {
    json::object entry{{"rule", rule}, {"message", message}};
    json::value& rules = schema["x-kubernetes-validations"];
    if (!rules.is_array()) rules = json::array();
    rules.get_array().emplace_back(std::move(entry));
    return schema;
}

}  // namespace opensandbox::controller::schema
