#include "agent/api/routes.hpp"

#include "agent/ground/reply.hpp"
#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "http/access_path.hpp"

namespace opensandbox::agent {
namespace {

/// Whether the request carries the token (execd 1.2); an empty one admits everybody. The token
/// comes in X-EXECD-ACCESS-TOKEN, or, from clients that do not send what an endpoint asks for, as
/// the first part of the path, "/.access/<token>/…" (http/access_path.hpp), which is taken away.
bool admit(const std::string& token, http::RequestHead& request) {
    std::string given = http::take_access_path(request.target);
    if (token.empty()) return true;
    if (given.empty()) given = request.fields.get(http::kAccessTokenField).value_or("");
    return equal_constant_time(given, token);
}

/// The shape of this one body differs from all others (execd contract 1.2).
Awaitable<void> reply_unauthorized(http::Exchange& exchange) {
    std::string body = R"({"error":"Unauthorized: invalid or missing header )" +
                       std::string(http::kAccessTokenField) + R"("})";
    co_await reply_json(exchange, 401, std::move(body));
}

Awaitable<void> ping(http::Exchange& exchange) {
    co_await reply_empty(exchange);
}

Awaitable<void> reply_unmatched(http::Exchange& exchange, std::vector<std::string> allowed) {
    std::string what = exchange.request().method + " " + std::string(exchange.request().path());
    if (allowed.empty()) {
        co_await reply_error(exchange, 404, code::kNotSupported, "no such route: " + what);
        co_return;
    }
    std::string list;
    for (const std::string& method : allowed)
        list += (list.empty() ? "" : ", ") + method;
    exchange.response_fields.set("Allow", list);
    co_await reply_error(exchange, 405, code::kNotSupported, "method not allowed: " + what);
}

std::string_view without_slash(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/'))
        path.remove_suffix(1);
    return path;
}

Awaitable<void> dispatch(http::Router& router, Services& services, http::Exchange& exchange) {
    http::RequestHead& request = exchange.request();
    if (!admit(services.options.access_token, request)) return reply_unauthorized(exchange);
    take_own_prefix(request.target, services.options.port);
    auto match = router.lookup(request.method, request.path());
    if (!match.handler) match = router.lookup(request.method, without_slash(request.path()));
    if (log::enabled(log::Level::debug)) {
        log::debug("request", {{"method", request.method}, {"target", request.target}});
    }
    if (!match.handler) return reply_unmatched(exchange, std::move(match.allowed));
    exchange.route = std::move(match.pattern);
    exchange.parameters = std::move(match.parameters);
    return (*match.handler)(exchange);
}

/// Notes how long the answer took and what it was, also when it was broken off.
Awaitable<void> measured(Services& services, http::Exchange& exchange, Awaitable<void> answer) {
    auto began = Telemetry::Clock::now();
    ScopeExit note([&] {
        int status = exchange.status() == 0 ? 500 : exchange.status();
        services.telemetry.request(exchange.request().method, exchange.route, status,
                                   Telemetry::Clock::now() - began);
    });
    co_await std::move(answer);
}

}  // namespace

http::Handler make_handler(Services& services) {
    auto router = std::make_shared<http::Router>();
    router->add("GET", "/ping", ping);
    add_command_routes(*router, services);
    add_code_routes(*router, services);
    add_interrupt_routes(*router, services);
    add_session_routes(*router, services);
    add_file_routes(*router, services);
    add_isolated_routes(*router, services);
    add_metrics_routes(*router, services);
    add_proxy_routes(*router, services);
    add_pty_routes(*router, services);
    return [router, &services](http::Exchange& exchange) -> Awaitable<void> {
        if (!services.telemetry.enabled()) return dispatch(*router, services, exchange);
        return measured(services, exchange, dispatch(*router, services, exchange));
    };
}

}  // namespace opensandbox::agent
