#include "lifecycle/lifecycle.hpp"
#include "model/snapshot_request.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/error_response.hpp"
#include "server/query_number.hpp"

namespace opensandbox::server {
namespace {

constexpr std::int64_t kMaxPageSize = 200;

/// What a runtime without snapshots answers.
std::optional<http::Response> refuse_without(lifecycle::Lifecycle& lifecycle) {
    if (lifecycle.capabilities().snapshots) return std::nullopt;
    return error_response(501, "SNAPSHOT::NOT_IMPLEMENTED",
                          "The runtime of this server has no snapshots.");
}

Awaitable<void> create_snapshot(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    std::string id = sandbox_id_of(exchange);
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto parsed = model::parse_snapshot_request(*body);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto known = lifecycle.agent(id);
    if (!known) {
        auto refusal = error_response(known.error());
        co_return co_await exchange.respond(std::move(refusal));
    }
    if (auto refusal = refuse_without(lifecycle)) {
        co_return co_await exchange.respond(std::move(*refusal));
    }
    auto& name = std::get<std::optional<std::string>>(parsed);
    auto accepted = co_await lifecycle.snapshots().create(id, std::move(name));
    if (!accepted) {
        auto refusal = error_response(accepted.error());
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto response = http::json_response(202, std::move(accepted->json));
    // With the prefix however the request came (lifecycle 1.4).
    response.head.fields.set("Location", "/v1/snapshots/" + accepted->id);
    co_await exchange.respond(std::move(response));
}

std::variant<lifecycle::SnapshotQuery, model::FieldErrors> parse_query(std::string_view raw) {
    http::Query given(raw);
    lifecycle::SnapshotQuery query;
    model::FieldErrors errors;
    read_number(given, "page", INT64_MAX, query.page.number, errors);
    read_number(given, "pageSize", kMaxPageSize, query.page.size, errors);
    if (!errors.empty()) return errors;
    query.sandbox_id = given.get("sandboxId");
    query.name = given.get("name");
    auto states = given.all("state");
    if (!states.empty()) query.states.emplace();
    for (std::string_view text : states) {
        if (auto state = model::parse_snapshot_state(text)) query.states->push_back(*state);
    }
    return query;
}

Awaitable<void> list_snapshots(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    auto parsed = parse_query(exchange.request().query());
    http::Response response;
    if (auto refusal = refuse_without(lifecycle)) {
        response = std::move(*refusal);
    } else if (auto* query = std::get_if<lifecycle::SnapshotQuery>(&parsed)) {
        query->tenant = exchange.tenant;
        response = http::json_response(200, lifecycle.snapshots().list(*query));
    } else {
        response = validation_response(std::get<model::FieldErrors>(parsed));
    }
    co_await exchange.respond(std::move(response));
}

Awaitable<void> get_snapshot(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    std::string id(exchange.parameter("snapshot_id"));
    auto json = lifecycle.snapshots().get(id, exchange.tenant);
    http::Response response;
    if (auto refusal = refuse_without(lifecycle)) {
        response = std::move(*refusal);
    } else if (json) {
        response = http::json_response(200, std::string(*json));
    } else {
        response = error_response(json.error());
    }
    co_await exchange.respond(std::move(response));
}

Awaitable<void> delete_snapshot(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    if (auto refusal = refuse_without(lifecycle)) {
        co_return co_await exchange.respond(std::move(*refusal));
    }
    std::string id(exchange.parameter("snapshot_id"));
    auto removed = co_await lifecycle.snapshots().remove(id, exchange.tenant);
    http::Response response(204);
    if (!removed) response = error_response(removed.error());
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_snapshot_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount) {
    using http::Exchange;
    std::string of_sandbox = std::string(mount) + "/sandboxes/{sandbox_id}/snapshots";
    std::string all = std::string(mount) + "/snapshots";
    std::string one = all + "/{snapshot_id}";
    lifecycle::Lifecycle* l = &lifecycle;
    router.add("POST", of_sandbox, [l](Exchange& x) { return create_snapshot(*l, x); });
    router.add("GET", all, [l](Exchange& x) { return list_snapshots(*l, x); });
    router.add("GET", one, [l](Exchange& x) { return get_snapshot(*l, x); });
    router.add("DELETE", one, [l](Exchange& x) { return delete_snapshot(*l, x); });
}

}  // namespace opensandbox::server
