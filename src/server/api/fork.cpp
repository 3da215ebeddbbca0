#include "model/fork_request.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"

namespace opensandbox::server {
namespace {

Awaitable<void> fork_sandbox(Services& services, http::Exchange& exchange) {
    std::string id = sandbox_id_of(exchange);
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto parsed = model::parse_fork_request(*body);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto& request = std::get<model::ForkRequest>(parsed);
    auto requester = services.requester(exchange);
    auto made = co_await services.lifecycle.fork(id, std::move(request), std::move(requester));
    if (!made) {
        auto refusal = error_response(made.error());
        co_return co_await exchange.respond(std::move(refusal));
    }
    std::string items;
    for (const std::string& item : *made)
        items += (items.empty() ? "" : ",") + item;
    auto response = http::json_response(201, "{\"items\":[" + items + "]}");
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_fork_routes(http::Router& router, Services& services, Mount mount) {
    Services* s = &services;
    router.add("POST", std::string(mount) + "/sandboxes/{sandbox_id}/fork",
               [s](http::Exchange& x) { return fork_sandbox(*s, x); });
}

}  // namespace opensandbox::server
