#include "base/identifier.hpp"
#include "http/access_path.hpp"
#include "http/reverse_proxy.hpp"
#include "http/server.hpp"
#include "http/status.hpp"
#include "http/websocket.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/api/services.hpp"
#include "server/auth.hpp"
#include "server/error_response.hpp"
#include "server/proxy/endpoint_address.hpp"
#include "server/proxy/proxy_rules.hpp"

namespace opensandbox::server {
namespace {

bool carries(const http::Fields& fields, std::string_view name, const std::string& token) {
    auto given = fields.get(name);
    return given && !token.empty() && equal_constant_time(*given, token);
}

/// Whether the request shows more than the id: a key of the server, or a token of the sandbox.
bool is_authorized(Services& services, http::Exchange& exchange,
                   const lifecycle::AgentAccess& agent) {
    // Tenants were asked for their key before.
    if (services.tenants || has_valid_key(exchange.request(), services.api_key)) return true;
    const http::Fields& fields = exchange.request().fields;
    if (carries(fields, http::kAccessTokenField, agent.token)) return true;
    if (carries(fields, kEgressTokenField, agent.endpoints.egress_token)) return true;
    ProxyTarget target = split_proxy_target(exchange.request().target);
    std::string in_path = http::take_access_path(target.rest);
    return !in_path.empty() && !agent.token.empty() && equal_constant_time(in_path, agent.token);
}

/// What the ways of one request share.
struct Passage {
    lifecycle::AgentAccess agent;
    Origination from;
    std::uint16_t port;
    std::string rest;  ///< of the target, raw
};

void lead(http::Forwarding& forwarding, const ProxyRoute& route,
          const std::shared_ptr<Passage>& passage) {
    forwarding.origin = http::Origin(route.host, route.port);
    forwarding.target = route_target(route, passage->port, passage->rest);
    forwarding.edit_request = [route, passage](http::Fields& fields) {
        edit_proxy_request(fields, route, passage->port, passage->agent.token, passage->from);
    };
    forwarding.failure_in = nullptr;
    if (route.through_agent && passage->port != kAgentPort) forwarding.failure_in = agent_failure;
}

http::Forwarding forwarding_to(Services& services, http::Exchange& exchange,
                               const ProxyRoute& route, lifecycle::AgentAccess agent,
                               std::uint16_t port) {
    ProxyTarget target = split_proxy_target(exchange.request().target);
    std::string location_prefix = target.prefix;
    if (std::string path = eip_path(services.config.eip); !path.empty()) {
        location_prefix = path + "/sandboxes/" + http::percent_encode(exchange.sandbox_id) +
                          "/proxy/" + std::to_string(port);
    }
    Origination from = origination_of(exchange.request().fields, exchange.peer_address(),
                                      services.config.trusted_proxies);
    // Tenants were asked for their key before.
    from.authorized = services.tenants || has_valid_key(exchange.request(), services.api_key);
    auto passage =
        std::make_shared<Passage>(std::move(agent), std::move(from), port, std::move(target.rest));
    http::Forwarding forwarding;
    lead(forwarding, route, passage);
    if (auto other = detour(passage->agent.endpoints, route)) {
        forwarding.reroute = [other = *other, passage](http::Forwarding& again) {
            lead(again, other, passage);
            return true;
        };
    }
    bool browser = is_browser(exchange.request());
    forwarding.edit_response = [location_prefix, browser, &exchange](http::ResponseHead& head) {
        rewrite_location(head.fields, location_prefix);
        isolate_page(head.fields, browser);
        head.fields.erase("Server");
        // One request id, one set of CORS fields: the server's own.
        for (const auto& [name, value] : exchange.response_fields) {
            if (!http::equal_ignoring_case(name, "Vary")) head.fields.erase(name);
        }
    };
    forwarding.render_error = [port, &exchange](const Error& error) {
        std::string backend = "port " + std::to_string(port) + " of sandbox " + exchange.sandbox_id;
        return render_backend_error(error, backend);
    };
    return forwarding;
}

Awaitable<void> proxy(Services& services, http::Exchange& exchange) {
    std::string id = sandbox_id_of(exchange);
    http::Response refusal;
    auto port = parse_port(exchange.parameter("port"),
                           services.lifecycle.error_code("INVALID_PORT"), refusal);
    if (!port) co_return co_await exchange.respond(std::move(refusal));
    const auto& fields = exchange.request().fields;
    if (fields.has_token("Upgrade", "websocket") &&
        !http::is_websocket_upgrade(exchange.request())) {
        refusal = error_response(400, "SANDBOX::INVALID_PARAMETER",
                                 "Upgrade: websocket without a complete WebSocket handshake.");
        co_return co_await exchange.respond(std::move(refusal));
    }
    if (is_service_worker(exchange.request())) {
        refusal = no_service_worker();
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto agent = services.lifecycle.agent(id);
    if (!agent) {
        refusal = error_response(agent.error());
        co_return co_await exchange.respond(std::move(refusal));
    }
    bool authorized = is_authorized(services, exchange, *agent);
    if (authorized) http::set_authorized(exchange);
    auto place = services.rooms.enter(authorized ? Traffic::proxied : Traffic::unauthorized, id);
    if (!place) {
        refusal = no_room();
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto route = choose_route(agent->endpoints, id, *port, services.config.resolve_internal);
    if (agent->status.state != model::SandboxState::running || !route) {
        std::string reason = "Sandbox " + id + " is " +
                             std::string(model::to_string(agent->status.state)) + ": " +
                             agent->status.message;
        refusal = error_response(502, "BACKEND_CONNECTION_FAILED", reason);
        co_return co_await exchange.respond(std::move(refusal));
    }
    if (services.renewer && fields.get("OpenSandbox-Access-Renew") != "skip") {
        services.renewer->used(id, *agent);
    }
    auto forwarding = forwarding_to(services, exchange, *route, std::move(*agent), *port);
    co_await http::forward(exchange, services.backends, std::move(forwarding));
}

}  // namespace

void add_proxy_routes(http::Router& router, Services& services, Mount mount) {
    Services* s = &services;
    std::string port = std::string(mount) + "/sandboxes/{sandbox_id}/proxy/{port}";
    for (std::string_view method : {"GET", "DELETE", "POST", "PUT", "PATCH"}) {
        router.add(method, port, [s](http::Exchange& x) { return proxy(*s, x); });
        router.add(method, port + "/{path...}", [s](http::Exchange& x) { return proxy(*s, x); });
    }
}

}  // namespace opensandbox::server
