#include "model/policy_request.hpp"

#include "json/document.hpp"
#include "model/create_rules.hpp"
#include "model/json_body.hpp"

#include <algorithm>

namespace opensandbox::model {
namespace {

/// The body as one value of a kind; the errors are at its root.
FieldErrors check_kind(std::string_view body, const FieldRule& rule, json::value& document) {
    FieldErrors errors = parse_body(body, document);
    if (errors.empty()) check_field(document, rule, Location{std::string("body")}, errors);
    return errors;
}

}  // namespace

FieldErrors check_policy_body(std::string_view body) {
    json::value document;
    FieldErrors errors = check_kind(body,
                                    FieldRule{.name = "body",
                                              .kind = FieldKind::object,
                                              .members = network_policy_rules(),
                                              .closed = true},
                                    document);
    if (!errors.empty()) return errors;
    if (const json::value* rules = find_field(document.get_object(), "egress")) {
        check_egress_rules(*rules, Location{std::string("body"), std::string("egress")}, errors);
    }
    return errors;
}

Result<NetworkPolicy> parse_policy_body(std::string_view body) {
    if (const FieldErrors errors = check_policy_body(body); !errors.empty()) {
        return Error(ErrorCode::invalid_argument, to_text({errors.front()}));
    }
    json::value document;
    (void)parse_body(body, document);
    return read_network_policy(document.get_object());
}

FieldErrors check_rules_body(std::string_view body) {
    json::value document;
    FieldErrors errors = check_kind(body,
                                    FieldRule{.name = "body",
                                              .kind = FieldKind::object_list,
                                              .members = egress_rule_rules(),
                                              .closed = true},
                                    document);
    if (errors.empty()) check_egress_rules(document, Location{std::string("body")}, errors);
    return errors;
}

bool has_ports(std::string_view body) {
    json::value document;
    if (!parse_body(body, document).empty()) return false;
    const json::value* rules = &document;
    if (document.is_object()) rules = find_field(document.get_object(), "egress");
    return rules && rules->is_array() &&
           std::ranges::any_of(rules->get_array(), [](const json::value& rule) {
               return rule.is_object() && find_field(rule.get_object(), "ports");
           });
}

FieldErrors check_targets_body(std::string_view body) {
    json::value document;
    return check_kind(body, FieldRule{.name = "body", .kind = FieldKind::text_list}, document);
}

}  // namespace opensandbox::model
