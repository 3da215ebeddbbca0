#include "json/document.hpp"
#include "model/field_rule.hpp"
#include "model/json_body.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/error_response.hpp"
#include "server/server_metrics.hpp"

#include <array>

namespace opensandbox::server {
namespace {

bool is_create_event(std::string_view text) {
    return text == "sandbox.create";
}

constexpr model::TextPattern kCreateEvent{is_create_event, "^sandbox\\.create$"};

/// The event that clients send after every create (lifecycle 9).
constexpr std::array kEventRules{
    model::FieldRule{.name = "eventType", .required = true, .pattern = &kCreateEvent},
    model::FieldRule{.name = "createDurationMs",
                     .kind = model::FieldKind::integer,
                     .required = true,
                     .minimum = 0},
    model::FieldRule{.name = "success", .kind = model::FieldKind::boolean, .required = true},
    model::FieldRule{.name = "sandboxId"},
    model::FieldRule{.name = "image"},
};

Awaitable<void> record_event(ServerMetrics& metrics, http::Exchange& exchange) {
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    json::value document;
    auto errors = model::parse_body(*body, document);
    const model::Location at{std::string("body")};
    if (errors.empty()) model::check_object(document, kEventRules, at, errors);
    if (!errors.empty()) {
        auto refusal = validation_response(errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    const auto& event = document.get_object();
    std::string agent(exchange.request().fields.get("User-Agent").value_or(""));
    metrics.record_client_create(agent, model::read_boolean(event, "success", false),
                                 model::read_integer(event, "createDurationMs").value_or(0));
    http::Response response(204);
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_metrics_event_routes(http::Router& router, ServerMetrics& metrics) {
    ServerMetrics* m = &metrics;
    router.add("POST", "/v1/metrics/events",
               [m](http::Exchange& x) { return record_event(*m, x); });
}

}  // namespace opensandbox::server
