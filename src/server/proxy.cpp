#include "http/reverse_proxy.hpp"
#include "http/status.hpp"
#include "http/websocket.hpp"
#include "server/api/request_body.hpp"
#include "server/api/services.hpp"
#include "server/auth.hpp"
#include "server/endpoint_address.hpp"
#include "server/error_response.hpp"
#include "server/proxy_rules.hpp"

namespace opensandbox::server {
namespace {

constexpr std::uint16_t kWebSocketInternalError = 1011;

/// A failure known before the backend is asked: to WebSocket clients it is told by closing.
Awaitable<void> refuse_early(http::Exchange& exchange, http::Response response,
                             std::string reason) {
    if (http::is_websocket_upgrade(exchange.request())) {
        co_return co_await http::accept_and_close(exchange, kWebSocketInternalError, reason);
    }
    co_await exchange.respond(std::move(response));
}

/// What the ways of one request share.
struct Passage {
    Passage(lifecycle::AgentAccess a, Origination f, std::uint16_t p, std::string r)
        : agent(std::move(a)), from(std::move(f)), port(p), rest(std::move(r)) {}
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
    forwarding.edit_response = [location_prefix, &exchange](http::ResponseHead& head) {
        rewrite_location(head.fields, location_prefix);
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
    forwarding.websocket_failure_code = kWebSocketInternalError;
    return forwarding;
}

Awaitable<void> proxy(Services& services, http::Exchange& exchange) {
    std::string id = sandbox_id_of(exchange);
    http::Response refusal;
    auto port = parse_port(exchange.parameter("port"),
                           services.lifecycle.error_code("INVALID_PORT"), refusal);
    if (!port) co_return co_await refuse_early(exchange, std::move(refusal), "invalid port");
    const auto& fields = exchange.request().fields;
    if (fields.has_token("Upgrade", "websocket") &&
        !http::is_websocket_upgrade(exchange.request())) {
        refusal = error_response(400, "SANDBOX::INVALID_PARAMETER",
                                 "Upgrade: websocket without a complete WebSocket handshake.");
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto agent = services.lifecycle.agent(id);
    if (!agent) {
        std::string reason = agent.error().message();
        refusal = error_response(agent.error());
        co_return co_await refuse_early(exchange, std::move(refusal), std::move(reason));
    }
    auto route = choose_route(agent->endpoints, id, *port, services.config.resolve_internal);
    if (agent->status.state != model::SandboxState::running || !route) {
        std::string reason = "Sandbox " + id + " is " +
                             std::string(model::to_string(agent->status.state)) + ": " +
                             agent->status.message;
        refusal = error_response(502, "BACKEND_CONNECTION_FAILED", reason);
        co_return co_await refuse_early(exchange, std::move(refusal), std::move(reason));
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
