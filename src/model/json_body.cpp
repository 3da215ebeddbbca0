#include "model/json_body.hpp"

#include "json/document.hpp"
#include "model/field_rule.hpp"

namespace opensandbox::model {

FieldErrors parse_body(std::string_view body, json::value& out) {
    const Location at{std::string("body")};
    if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
        return {FieldError("missing", at, "Field required", "null")};
    }
    auto parsed = json::parse(body);
    if (!parsed) {
        return {FieldError("json_invalid", at, "JSON decode error", "{}",
                           "{\"error\":" + json_string(parsed.error().message()) + "}")};
    }
    out = std::move(parsed.value());
    return {};
}

std::variant<std::vector<std::pair<std::string, std::optional<std::string>>>, FieldErrors>
parse_nullable_map(std::string_view body) {
    json::value document;
    FieldErrors errors = parse_body(body, document);
    if (!errors.empty()) return errors;
    const FieldRule rule{.name = "body", .kind = FieldKind::nullable_text_map};
    check_field(document, rule, Location{std::string("body")}, errors);
    if (!errors.empty()) return errors;
    std::vector<std::pair<std::string, std::optional<std::string>>> map;
    for (const auto& [key, item] : document.get_object()) {
        std::optional<std::string> value;
        if (item.is_string()) value = std::string(item.get_string());
        map.emplace_back(std::string(key), std::move(value));
    }
    return map;
}

}  // namespace opensandbox::model
