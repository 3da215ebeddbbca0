#include "model/snapshot_request.hpp"

#include "json/document.hpp"
#include "model/field_rule.hpp"
#include "model/json_body.hpp"

#include <array>

namespace opensandbox::model {
namespace {

constexpr std::array kSnapshotRules{FieldRule{.name = "name", .minimum = 1}};

}  // namespace

std::variant<std::optional<std::string>, FieldErrors> parse_snapshot_request(
    std::string_view body) {
    if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::nullopt;
    json::value document;
    FieldErrors errors = parse_body(body, document);
    if (errors.empty() && document.is_null()) return std::nullopt;
    if (errors.empty())
        check_object(document, kSnapshotRules, Location{std::string("body")}, errors);
    if (!errors.empty()) return errors;
    return read_text(document.get_object(), "name");
}

}  // namespace opensandbox::model
