#include "server/api/app.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "http/access_path.hpp"
#include "http/server.hpp"
#include "server/api/routes.hpp"
#include "server/auth.hpp"
#include "server/error_response.hpp"

#include <algorithm>
#include <exception>

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxRequestId = 128;
constexpr std::string_view kMetricsPath = "/metrics";

/// Routes that are asked all the time by machines and say nothing new.
bool is_quiet(std::string_view path) {
    return path == "/health" || path == kMetricsPath;
}

}  // namespace

std::string choose_request_id(const http::RequestHead& request, HexIds& ids) {
    std::string_view given = request.fields.get("X-Request-ID").value_or("");
    while (given.starts_with(' '))
        given.remove_prefix(1);
    while (given.ends_with(' '))
        given.remove_suffix(1);
    bool visible = std::ranges::all_of(given, [](char c) { return c > ' ' && c < 0x7f; });
    if (given.empty() || given.size() > kMaxRequestId || !visible) return ids.next();
    return std::string(given);
}

App::App(std::unique_ptr<Services> services) : owned_(std::move(services)), services_(*owned_) {
    add_service_routes(router_, services_);
    add_docs_routes(router_);
    add_metrics_event_routes(router_, services_.metrics);
    for (Mount mount : {"/v1", ""}) {
        add_sandbox_routes(router_, services_, mount);
        add_pause_routes(router_, services_.lifecycle, mount);
        add_fork_routes(router_, services_, mount);
        add_snapshot_routes(router_, services_.lifecycle, mount);
        add_pool_routes(router_, services_.lifecycle, mount);
        add_network_policy_routes(router_, services_, mount);
        add_endpoint_routes(router_, services_, mount);
        add_proxy_routes(router_, services_, mount);
        add_image_routes(router_, services_, mount);
        add_image_derivation_routes(router_, services_, mount);
        add_diagnostics_routes(router_, services_.lifecycle, mount);
        add_unsupported_routes(router_, services_.lifecycle, mount);
    }
}

http::Handler App::handler(std::shared_ptr<App> app) {
    return [app = std::move(app)](http::Exchange& exchange) { return app->handle(exchange); };
}

Awaitable<void> App::handle(http::Exchange& exchange) {
    auto begin = std::chrono::steady_clock::now();
    ++services_.metrics.requests_in_flight;
    ScopeExit leave([this] { --services_.metrics.requests_in_flight; });
    exchange.request_id = choose_request_id(exchange.request(), request_ids_);
    exchange.response_fields.set("X-Request-ID", exchange.request_id);
    exchange.response_fields.set("Vary", "Origin");
    add_cors_fields(exchange.request(), exchange.response_fields, Reader::anybody);
    bool failed = false;
    try {
        co_await answer(exchange);
    } catch (const std::exception& problem) {
        log::error("handler failed", {{"request", exchange.request_id}, {"error", problem.what()}});
        failed = true;
    }
    if (failed && !exchange.started() && exchange.status() == 0) {
        auto response = error_response(500, "GENERAL::UNKNOWN_ERROR", "");
        co_await exchange.respond(std::move(response));
    }
    record(exchange, begin);
}

Awaitable<void> App::answer(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    if (auto preflight = answer_preflight(request)) {
        add_cors_fields(request, exchange.response_fields, Reader::authorized);
        co_return co_await exchange.respond(std::move(*preflight));
    }
    // Scrapers on this machine need no key; /metrics holds counts, no names.
    bool exempt = request.path() == kMetricsPath && is_loopback(exchange.peer_address());
    if (!exempt && services_.tenants) {
        bool known = co_await admit_tenant(exchange);
        if (!known) co_return;
    } else if (!exempt) {
        if (auto refusal = refuse(request, services_.api_key)) {
            co_return co_await exchange.respond(std::move(*refusal));
        }
    }
    // The proxy counts for itself: it knows the tokens of sandboxes, too.
    if (is_quiet(request.path()) || is_proxy_path(request.path())) {
        co_await route(exchange);
    } else {
        co_await control(exchange);
    }
}

Awaitable<void> App::control(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    bool authorized =
        services_.tenants ? !exchange.tenant.empty() : has_valid_key(request, services_.api_key);
    if (has_opaque_origin(request)) {
        bool keyed = authorized && (services_.tenants || !services_.api_key.empty());
        if (keyed) {
            add_cors_fields(request, exchange.response_fields, Reader::authorized);
        } else if (!is_public_path(request.path())) {
            auto refusal = no_opaque_origin();
            co_return co_await exchange.respond(std::move(refusal));
        }
    }
    if (authorized) http::set_authorized(exchange);
    std::optional<RequestRooms::Place> place;
    // What needs no key is answered at once, so there is no need to count it.
    if (authorized) {
        place = services_.rooms.enter(Traffic::control);
        if (!place) {
            auto refusal = no_room();
            co_return co_await exchange.respond(std::move(refusal));
        }
    }
    co_await route(exchange);
}

Awaitable<void> App::route(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    auto match = router_.lookup(request.method, request.path());
    if (match.handler) {
        exchange.route = std::move(match.pattern);
        exchange.parameters = std::move(match.parameters);
        if (services_.tenants) {
            bool hidden = co_await hide_foreign(exchange);
            if (hidden) co_return;
        }
        co_return co_await (*match.handler)(exchange);
    }
    if (!match.allowed.empty()) {
        auto response = wrong_method(match.allowed);
        co_return co_await exchange.respond(std::move(response));
    }
    co_await redirect_without_slash(exchange);
}

/// A route with a slash too many is answered with where it is (lifecycle 1.1).
Awaitable<void> App::redirect_without_slash(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    std::string_view path = request.path();
    http::Response response = unknown_route();
    if (path.size() > 1 && path.ends_with('/')) {
        path.remove_suffix(1);
        auto match = router_.lookup(request.method, path);
        auto host = request.fields.get("Host");
        if (host && (match.handler || !match.allowed.empty())) {
            std::string location = "http://" + std::string(*host) + std::string(path);
            if (!request.query().empty()) location += "?" + std::string(request.query());
            response = http::Response(307);
            response.head.fields.set("Location", std::move(location));
        }
    }
    co_await exchange.respond(std::move(response));
}

void App::record(http::Exchange& exchange, std::chrono::steady_clock::time_point begin) {
    auto took = std::chrono::steady_clock::now() - begin;
    const http::RequestHead& request = exchange.request();
    services_.metrics.record_request(request.method, exchange.route, exchange.status(), took);
    log::Level level = is_quiet(request.path()) ? log::Level::debug : log::Level::info;
    if (!log::enabled(level)) return;
    double milliseconds = std::chrono::duration<double, std::milli>(took).count();
    std::string_view sandbox =
        exchange.sandbox_id.empty() ? "-" : std::string_view(exchange.sandbox_id);
    log::write(level, "request",
               {{"request", exchange.request_id},
                {"method", request.method},
                {"path", http::without_access_tokens(request.path())},
                {"status", exchange.status()},
                {"ms", milliseconds},
                {"bytes", exchange.bytes_sent()},
                {"sandbox", sandbox},
                {"peer", exchange.peer_address()}});
}

}  // namespace opensandbox::server
