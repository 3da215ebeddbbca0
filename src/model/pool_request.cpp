#include "model/pool_request.hpp"

#include "json/document.hpp"
#include "model/create_rules.hpp"
#include "model/json_body.hpp"

#include <array>

namespace opensandbox::model {
namespace {

constexpr FieldRule count(std::string_view name) {
    return {.name = name, .kind = FieldKind::integer, .required = true, .minimum = 0};
}

constexpr std::array kCapacity{count("bufferMax"), count("bufferMin"), count("poolMax"),
                               count("poolMin")};
constexpr FieldRule kCapacityRule{
    .name = "capacitySpec", .kind = FieldKind::object, .required = true, .members = kCapacity};
constexpr FieldRule kPolicyRule{.name = "networkPolicy",
                                .unserved = "is not served here; it belongs into template."};
constexpr std::array kPool{
    FieldRule{.name = "name", .required = true, .maximum = 253, .pattern = &kDnsName},
    FieldRule{.name = "template", .kind = FieldKind::object, .required = true},
    kCapacityRule,
    kPolicyRule,
};
constexpr std::array kUpdate{kCapacityRule, kPolicyRule};

PoolCapacity read_capacity(const json::object& body) {
    const json::object& given = find_field(body, "capacitySpec")->get_object();
    auto number = [&](std::string_view name) { return read_integer(given, name).value_or(0); };
    return {number("bufferMin"), number("bufferMax"), number("poolMin"), number("poolMax")};
}

FieldErrors check(std::string_view body, std::span<const FieldRule> rules, json::value& document) {
    FieldErrors errors = parse_body(body, document);
    if (errors.empty()) check_object(document, rules, Location{std::string("body")}, errors);
    return errors;
}

}  // namespace

std::variant<PoolRequest, FieldErrors> parse_pool_request(std::string_view body) {
    json::value document;
    FieldErrors errors = check(body, kPool, document);
    if (!errors.empty()) return errors;
    const json::object& given = document.get_object();
    PoolRequest request;
    request.name = read_text(given, "name").value_or("");
    request.template_json = json::serialize(*find_field(given, "template"));
    request.capacity = read_capacity(given);
    return request;
}

std::variant<PoolCapacity, FieldErrors> parse_capacity_request(std::string_view body) {
    json::value document;
    FieldErrors errors = check(body, kUpdate, document);
    if (!errors.empty()) return errors;
    return read_capacity(document.get_object());
}

}  // namespace opensandbox::model
