#include "base/scope_exit.hpp"
#include "model/create_request.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"
#include "server/list_query.hpp"

namespace opensandbox::server {
namespace {

/// The document, or the error in the contract's shape.
Awaitable<void> respond_json(http::Exchange& exchange, Result<std::string> json) {
    http::Response response;
    if (json) {
        response = http::json_response(200, std::move(json.value()));
    } else {
        response = error_response(json.error());
    }
    co_await exchange.respond(std::move(response));
}

Awaitable<void> create_sandbox(Services& services, http::Exchange& exchange) {
    auto begin = std::chrono::steady_clock::now();
    bool success = false;
    ScopeExit record(
        [&] { services.metrics.record_create(success, std::chrono::steady_clock::now() - begin); });
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto parsed = model::parse_create_request(*body);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    std::optional<lifecycle::IdempotencyKey> key;
    if (auto header = exchange.request().fields.get("Idempotency-Key")) {
        auto made = lifecycle::make_idempotency_key(*header, *body);
        if (!made) {
            auto refusal = error_response(made.error());
            co_return co_await exchange.respond(std::move(refusal));
        }
        key = std::move(made.value());
    }
    auto& request = std::get<model::CreateRequest>(parsed);
    auto created = co_await services.lifecycle.create(std::move(request), std::move(key),
                                                      services.requester(exchange));
    if (!created) {
        auto refusal = error_response(created.error());
        // A pool has a sandbox again, or a quota room, when another one is deleted.
        if (created.error().code() == ErrorCode::resource_exhausted) {
            refusal.head.fields.set("Retry-After", "5");
        }
        co_return co_await exchange.respond(std::move(refusal));
    }
    success = true;
    exchange.sandbox_id = created->id;
    auto response = http::json_response(202, std::move(created->json));
    co_await exchange.respond(std::move(response));
}

Awaitable<void> list_sandboxes(Services& services, http::Exchange& exchange) {
    auto parsed = parse_list_query(exchange.request().query());
    http::Response response;
    if (auto* query = std::get_if<lifecycle::ListQuery>(&parsed)) {
        query->tenant = exchange.tenant;
        response = http::json_response(200, services.lifecycle.list(*query));
    } else {
        const auto& problem = std::get<ListQueryError>(parsed);
        const auto* errors = std::get_if<model::FieldErrors>(&problem);
        response = errors ? validation_response(*errors) : error_response(std::get<Error>(problem));
    }
    co_await exchange.respond(std::move(response));
}

Awaitable<void> get_sandbox(Services& services, http::Exchange& exchange) {
    auto json = services.lifecycle.get(sandbox_id_of(exchange));
    http::Response response;
    if (json) {
        response = http::json_response(200, std::string(*json));
    } else {
        response = error_response(json.error());
    }
    co_await exchange.respond(std::move(response));
}

Awaitable<void> delete_sandbox(Services& services, http::Exchange& exchange) {
    auto removed = co_await services.lifecycle.remove(sandbox_id_of(exchange));
    http::Response response(204);
    if (!removed) response = error_response(removed.error());
    co_await exchange.respond(std::move(response));
}

Awaitable<void> renew_sandbox(Services& services, http::Exchange& exchange) {
    std::string id = sandbox_id_of(exchange);
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto parsed = model::parse_renew_request(*body);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto renewed = co_await services.lifecycle.renew(id, std::get<Timestamp>(parsed));
    Result<std::string> answer = Error();
    if (renewed) {
        answer = "{\"expiresAt\":\"" + to_rfc3339(*renewed) + "\"}";
    } else {
        answer = renewed.error();
    }
    co_await respond_json(exchange, std::move(answer));
}

Awaitable<void> patch_metadata(Services& services, http::Exchange& exchange) {
    std::string id = sandbox_id_of(exchange);
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto parsed = model::parse_metadata_patch(*body);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto& patch = std::get<model::MetadataPatch>(parsed);
    auto patched = co_await services.lifecycle.patch_metadata(id, std::move(patch));
    co_await respond_json(exchange, std::move(patched));
}

}  // namespace

void add_sandbox_routes(http::Router& router, Services& services, Mount mount) {
    using http::Exchange;
    std::string all = std::string(mount) + "/sandboxes";
    std::string one = all + "/{sandbox_id}";
    Services* s = &services;
    router.add("POST", all, [s](Exchange& x) { return create_sandbox(*s, x); });
    router.add("GET", all, [s](Exchange& x) { return list_sandboxes(*s, x); });
    router.add("GET", one, [s](Exchange& x) { return get_sandbox(*s, x); });
    router.add("DELETE", one, [s](Exchange& x) { return delete_sandbox(*s, x); });
    router.add("POST", one + "/renew-expiration",
               [s](Exchange& x) { return renew_sandbox(*s, x); });
    router.add("PATCH", one + "/metadata", [s](Exchange& x) { return patch_metadata(*s, x); });
}

}  // namespace opensandbox::server
