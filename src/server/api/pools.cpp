#include "lifecycle/lifecycle.hpp"
#include "model/pool_request.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/error_response.hpp"

namespace opensandbox::server {
namespace {

lifecycle::Pools::Key key_of(const http::Exchange& exchange) {
    std::string raw(exchange.parameter("pool"));
    return {exchange.tenant, http::percent_decode(raw).value_or(raw)};
}

Awaitable<void> respond(http::Exchange& exchange, int status, Result<std::string> json) {
    http::Response response;
    if (json) {
        response = http::json_response(status, std::move(json.value()));
    } else {
        response = error_response(json.error());
    }
    co_await exchange.respond(std::move(response));
}

/// Where a runtime has no pools, that comes before what is wrong with the body.
Awaitable<bool> refused(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    auto supported = lifecycle.pools().supported();
    if (supported) co_return false;
    auto refusal = error_response(supported.error());
    co_await exchange.respond(std::move(refusal));
    co_return true;
}

Awaitable<void> create_pool(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    if (co_await refused(lifecycle, exchange)) co_return;
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto parsed = model::parse_pool_request(*body);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto& request = std::get<model::PoolRequest>(parsed);
    auto made = co_await lifecycle.pools().create(std::move(request), exchange.tenant);
    co_await respond(exchange, 201, std::move(made));
}

Awaitable<void> list_pools(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    auto list = lifecycle.pools().list(exchange.tenant);
    co_await respond(exchange, 200, std::move(list));
}

Awaitable<void> get_pool(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    auto pool = lifecycle.pools().get(key_of(exchange));
    co_await respond(exchange, 200, std::move(pool));
}

Awaitable<void> update_pool(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    if (co_await refused(lifecycle, exchange)) co_return;
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto parsed = model::parse_capacity_request(*body);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto capacity = std::get<model::PoolCapacity>(parsed);
    auto key = key_of(exchange);
    auto changed = co_await lifecycle.pools().resize(std::move(key), capacity);
    co_await respond(exchange, 200, std::move(changed));
}

Awaitable<void> delete_pool(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    auto removed = co_await lifecycle.pools().remove(key_of(exchange));
    http::Response response(204);
    if (!removed) response = error_response(removed.error());
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_pool_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount) {
    using http::Exchange;
    std::string all = std::string(mount) + "/pools";
    std::string one = all + "/{pool}";
    lifecycle::Lifecycle* l = &lifecycle;
    router.add("POST", all, [l](Exchange& x) { return create_pool(*l, x); });
    router.add("GET", all, [l](Exchange& x) { return list_pools(*l, x); });
    router.add("GET", one, [l](Exchange& x) { return get_pool(*l, x); });
    router.add("PUT", one, [l](Exchange& x) { return update_pool(*l, x); });
    router.add("DELETE", one, [l](Exchange& x) { return delete_pool(*l, x); });
}

}  // namespace opensandbox::server
