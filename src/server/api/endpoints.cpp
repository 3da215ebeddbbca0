#include "http/access_path.hpp"
#include "model/field_rule.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"
#include "server/proxy/endpoint_address.hpp"
#include "server/proxy/proxy_rules.hpp"

namespace opensandbox::server {
namespace {

/// The query of an endpoint request.
struct EndpointQuery {
    bool use_server_proxy = false;
    bool expires = false;
};

/// Schema errors are gathered; empty when the query is well-formed.
model::FieldErrors parse_query(std::string_view raw, EndpointQuery& query) {
    http::Query given(raw);
    model::FieldErrors errors;
    if (auto text = given.get("use_server_proxy")) {
        if (auto flag = model::lax_boolean(*text)) {
            query.use_server_proxy = *flag;
        } else {
            model::Location at{std::string("query"), std::string("use_server_proxy")};
            errors.emplace_back("bool_parsing", at,
                                "Input should be a valid boolean, unable to interpret input",
                                model::json_string(*text));
        }
    }
    if (auto text = given.get("expires")) {
        query.expires = true;
        if (!model::lax_integer(*text)) {
            model::Location at{std::string("query"), std::string("expires")};
            errors.emplace_back(
                "int_parsing", at,
                "Input should be a valid integer, unable to parse string as an integer",
                model::json_string(*text));
        }
    }
    return errors;
}

std::string request_host(const http::Exchange& exchange, const Config& config) {
    auto host = exchange.request().fields.get("Host");
    return host ? std::string(*host) : join_host_port(config.host, config.port);
}

std::string render(const std::string& endpoint, const http::Fields& headers) {
    std::string body = "{\"endpoint\":" + model::json_string(endpoint);
    std::string list;
    for (const auto& [name, value] : headers) {
        list +=
            (list.empty() ? "" : ",") + model::json_string(name) + ":" + model::json_string(value);
    }
    if (!list.empty()) body += ",\"headers\":{" + list + "}";
    return body + "}";
}

http::Response endpoint_of(Services& services, http::Exchange& exchange) {
    EndpointQuery query;
    auto errors = parse_query(exchange.request().query(), query);
    if (!errors.empty()) return validation_response(errors);
    http::Response refusal;
    auto port = parse_port(exchange.parameter("port"),
                           services.lifecycle.error_code("INVALID_PORT"), refusal);
    if (!port) return refusal;
    if (query.expires && query.use_server_proxy) {
        return error_response(400, "SANDBOX::INVALID_PARAMETER",
                              "expires: must not be combined with use_server_proxy=true.");
    }
    if (query.expires) {
        return error_response(400, "SANDBOX::API_NOT_SUPPORTED",
                              "expires: signed endpoints need an ingress gateway, which this "
                              "runtime has not.");
    }
    std::string id = sandbox_id_of(exchange);
    auto agent = services.lifecycle.agent(id);
    if (!agent) return error_response(agent.error());

    std::optional<DirectEndpoint> direct;
    if (!query.use_server_proxy) {
        bool agent_known = agent->endpoints.agent.port != 0 || agent->endpoints.host_network;
        if (*port == kAgentPort && !agent_known) {
            return error_response(
                500, services.lifecycle.error_code("NETWORK_MODE_ENDPOINT_UNAVAILABLE"),
                "Sandbox " + id + " has no address yet.");
        }
        direct = direct_endpoint(agent->endpoints, services.public_host, id, *port);
    }
    std::string endpoint =
        direct ? direct->address
               : proxied_endpoint(services.config.eip, request_host(exchange, services.config),
                                  mount_of(exchange), id, *port);
    http::Fields headers;
    bool asks_agent = *port == kAgentPort || (direct && direct->through_agent);
    if (asks_agent && !agent->token.empty()) {
        headers.set(http::kAccessTokenField, agent->token);
        auto client = exchange.request().fields.get("User-Agent").value_or("");
        if (ignores_endpoint_headers(client)) {
            bool by_agent =
                direct && !agent->endpoints.host_network && !agent->endpoints.own_address;
            endpoint = with_access_path(endpoint, agent->token,
                                        by_agent ? port : std::optional<std::uint16_t>());
        }
    }
    if (*port == kEgressPort && !agent->endpoints.egress_token.empty())
        headers.set(kEgressTokenField, agent->endpoints.egress_token);
    return http::json_response(200, render(endpoint, headers));
}

Awaitable<void> get_endpoint(Services& services, http::Exchange& exchange) {
    auto response = endpoint_of(services, exchange);
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_endpoint_routes(http::Router& router, Services& services, Mount mount) {
    Services* s = &services;
    router.add("GET", std::string(mount) + "/sandboxes/{sandbox_id}/endpoints/{port}",
               [s](http::Exchange& x) { return get_endpoint(*s, x); });
}

}  // namespace opensandbox::server
