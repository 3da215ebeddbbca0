#include "model/fork_request.hpp"

#include "json/document.hpp"
#include "model/create_request.hpp"
#include "model/field_rule.hpp"
#include "model/json_body.hpp"

#include <array>

namespace opensandbox::model {
namespace {

constexpr std::array kForkRules{
    FieldRule{.name = "count", .kind = FieldKind::integer, .minimum = 1, .maximum = kMostForks},
    FieldRule{.name = "timeout", .kind = FieldKind::integer, .minimum = 60},
    FieldRule{.name = "metadata", .kind = FieldKind::text_map},
    FieldRule{.name = "env", .kind = FieldKind::text_map},
    FieldRule{.name = "entrypoint", .kind = FieldKind::text_list, .minimum = 1},
    FieldRule{.name = "overrides",
              .unserved = "is not served; a copy may have its own env, metadata, entrypoint."},
};
constexpr FieldRule kBody{
    .name = "body", .kind = FieldKind::object, .members = kForkRules, .closed = true};

}  // namespace

std::variant<ForkRequest, FieldErrors> parse_fork_request(std::string_view body) {
    ForkRequest request;
    if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return request;
    json::value document;
    FieldErrors errors = parse_body(body, document);
    if (errors.empty() && document.is_null()) return request;
    if (errors.empty()) check_field(document, kBody, Location{std::string("body")}, errors);
    if (!errors.empty()) return errors;
    const json::object& given = document.get_object();
    request.count = read_integer(given, "count").value_or(1);
    if (auto timeout = read_integer(given, "timeout")) {
        request.life = ForkLife::timeout;
        request.timeout_seconds = *timeout;
    } else if (has_field(given, "timeout")) {
        request.life = ForkLife::unlimited;
    }
    request.metadata = read_map(given, "metadata").value_or(StringMap());
    request.env = read_map(given, "env").value_or(StringMap());
    request.entrypoint = read_list(given, "entrypoint").value_or(std::vector<std::string>());
    if (request.entrypoint.size() == 1 &&
        request.entrypoint.front().find(' ') != std::string::npos) {
        // As in a create request.
        if (auto words = shell_split(request.entrypoint.front()); words && !words->empty()) {
            request.entrypoint = std::move(*words);
        }
    }
    return request;
}

}  // namespace opensandbox::model
