#include "model/policy_request.hpp"

#include "json/document.hpp"
#include "model/create_rules.hpp"
#include "model/json_body.hpp"

namespace opensandbox::model {
namespace {

/// The body as one value of a kind; the errors are at its root.
FieldErrors check_list(std::string_view body, FieldRule rule) {
    json::value document;
    FieldErrors errors = parse_body(body, document);
    if (!errors.empty()) return errors;
    check_field(document, rule, Location{std::string("body")}, errors);
    return errors;
}

}  // namespace

FieldErrors check_policy_body(std::string_view body) {
    json::value document;
    FieldErrors errors = parse_body(body, document);
    if (!errors.empty()) return errors;
    check_object(document, network_policy_rules(), Location{std::string("body")}, errors);
    return errors;
}

FieldErrors check_rules_body(std::string_view body) {
    return check_list(
        body,
        FieldRule{.name = "body", .kind = FieldKind::object_list, .members = egress_rule_rules()});
}

FieldErrors check_targets_body(std::string_view body) {
    return check_list(body, FieldRule{.name = "body", .kind = FieldKind::text_list});
}

}  // namespace opensandbox::model
