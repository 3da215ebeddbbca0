#include "server/api/app.hpp"
#include "server/auth.hpp"
#include "server/error_response.hpp"

/// What the app does when there are several tenants (lifecycle 7.3, 3.4).
namespace opensandbox::server {
namespace {

/// What belongs to all tenants must not be changed by one of them.
bool changes_images(const http::Exchange& exchange) {
    std::string_view route = exchange.route;
    if (route.starts_with("/v1/")) route.remove_prefix(3);
    return exchange.request().method != "GET" &&
           (route.starts_with("/images") ||
            (route.starts_with("/snapshots/") && route.ends_with("/image")));
}

}  // namespace

Awaitable<bool> App::admit_tenant(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    if (is_public_path(request.path())) co_return true;
    std::string key(request.fields.get(kApiKeyField).value_or(""));
    bool missing = key.empty();
    Result<std::string> space = Error(ErrorCode::unauthenticated, "no API key was sent");
    if (!missing) space = co_await services_.tenants->authenticate(std::move(key));
    if (space) {
        exchange.tenant = std::move(space.value());
        co_return true;
    }
    bool down = space.error().code() != ErrorCode::unauthenticated;
    http::Response refusal = missing ? missing_key() : invalid_key();
    if (down) refusal = error_response(503, "TENANT_PROVIDER_UNAVAILABLE", space.error().message());
    co_await exchange.respond(std::move(refusal));
    co_return false;
}

Awaitable<bool> App::hide_foreign(http::Exchange& exchange) {
    Status refused;
    std::string_view id = exchange.parameter("sandbox_id");
    if (!id.empty()) {
        auto agent = services_.lifecycle.agent(id);
        if (!agent) {
            refused = agent.error();
        } else if (agent->tenant != exchange.tenant) {
            refused = services_.lifecycle.not_found(id);
        }
    }
    if (changes_images(exchange)) {
        refused = Error(ErrorCode::permission_denied, "IMAGE::FORBIDDEN",
                        "Images belong to all tenants; whoever runs this server imports and "
                        "removes them.");
    }
    if (refused) co_return false;
    Error error = refused.error();
    auto response = error_response(error);
    co_await exchange.respond(std::move(response));
    co_return true;
}

}  // namespace opensandbox::server
