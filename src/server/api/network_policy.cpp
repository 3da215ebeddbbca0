#include "http/access_path.hpp"
#include "model/policy_request.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"
#include "server/proxy/proxy_rules.hpp"

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxAnswer = 8 * 1024 * 1024;

/// What the sidecar of a sandbox answers; credentials are ours, not the caller's.
Awaitable<Result<http::Response>> ask_sidecar(Services& services, lifecycle::AgentAccess agent,
                                              std::string id, std::string method,
                                              std::string body) {
    auto route = choose_route(agent.endpoints, id, kEgressPort, services.config.resolve_internal);
    if (!route) co_return Error(ErrorCode::unavailable, "it has no address");
    http::Fields fields;
    fields.add(kEgressTokenField, agent.endpoints.egress_token);
    if (route->through_agent && !agent.token.empty())
        fields.add(http::kAccessTokenField, agent.token);
    if (!body.empty()) fields.add("Content-Type", "application/json");
    http::ClientRequest request(std::move(method), route_target(*route, kEgressPort, "/policy"),
                                std::move(fields));
    request.content = std::move(body);
    http::Origin origin(route->host, route->port);
    auto answer = co_await services.backends.send(origin, std::move(request));
    if (!answer) co_return answer.error();
    const http::ResponseHead& head = (*answer)->head();
    if (route->through_agent) {
        if (auto failure = agent_failure(head)) co_return *failure;
    }
    auto text = co_await http::read_all((*answer)->body(), kMaxAnswer);
    if (!text) co_return Error(ErrorCode::bad_gateway, text.error().message());
    std::string type(head.fields.get("Content-Type").value_or("application/json"));
    http::Response response(head.status, std::move(type), std::move(text.value()));
    co_return response;
}

http::Response unreachable(const std::string& id, const Error& error) {
    return render_backend_error(error, "egress sidecar of sandbox " + id);
}

Awaitable<http::Response> answer(Services& services, std::string id, std::string method,
                                 std::string body) {
    // Such ids belong to a runtime that this server does not have (lifecycle 3.5).
    if (id.starts_with("fsb-")) {
        co_return error_response(404, "GENERAL::UNKNOWN_ERROR", "Sandbox " + id + " not found.");
    }
    auto agent = services.lifecycle.agent(id);
    if (!agent) co_return error_response(agent.error());
    if (agent->status.state != model::SandboxState::running) {
        std::string state(model::to_string(agent->status.state));
        co_return unreachable(id, Error(ErrorCode::unavailable, "the sandbox is " + state));
    }
    if (agent->endpoints.egress_token.empty()) {
        co_return unreachable(
            id, Error(ErrorCode::unavailable, "the sandbox was made without networkPolicy"));
    }
    auto response = co_await ask_sidecar(services, std::move(agent.value()), id, std::move(method),
                                         std::move(body));
    if (!response) co_return unreachable(id, response.error());
    co_return std::move(response.value());
}

model::FieldErrors check_body(std::string_view method, std::string_view body) {
    if (method == "PUT") return model::check_policy_body(body);
    if (method == "PATCH") return model::check_rules_body(body);
    if (method == "DELETE") return model::check_targets_body(body);
    return {};
}

Awaitable<void> network_policy(Services& services, http::Exchange& exchange) {
    std::string id = sandbox_id_of(exchange);
    std::string method = exchange.request().method;
    auto body = co_await read_json_body(exchange);
    if (!body) co_return;
    auto errors = check_body(method, *body);
    if (!errors.empty()) {
        auto refusal = validation_response(errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    const bool foreign =
        services.config.runtime != RuntimeType::native && !services.config.sidecar.image.empty();
    if (foreign && (method == "PUT" || method == "PATCH") && model::has_ports(*body)) {
        co_return co_await exchange.respond(error_response(
            400, "SANDBOX::INVALID_PARAMETER",
            "egress.ports: not supported with egress.image, whose sidecar may pass over them."));
    }
    if (method == "GET") body->clear();
    auto response = co_await answer(services, std::move(id), std::move(method), std::move(*body));
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_network_policy_routes(http::Router& router, Services& services, Mount mount) {
    std::string route = std::string(mount) + "/sandboxes/{sandbox_id}/networkpolicy";
    Services* s = &services;
    for (std::string_view method : {"GET", "PUT", "PATCH", "DELETE"})
        router.add(method, route, [s](http::Exchange& x) { return network_policy(*s, x); });
}

}  // namespace opensandbox::server
