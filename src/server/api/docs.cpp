#include "server/api/services.hpp"
#include "server/docs/documents.hpp"

namespace opensandbox::server {
namespace {

/// The page may run its own script and ask this server, and nothing else.
constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

Awaitable<void> openapi(http::Exchange& exchange) {
    auto response = http::json_response(200, std::string(openapi_document()));
    co_await exchange.respond(std::move(response));
}

/// `/docs` and `/redoc` are one page: it looks at where it was loaded from.
Awaitable<void> page(http::Exchange& exchange) {
    http::Response response(200, "text/html; charset=utf-8", std::string(docs_page()));
    response.head.fields.set("Content-Security-Policy", std::string(kPagePolicy));
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_docs_routes(http::Router& router) {
    router.add("GET", "/openapi.json", openapi);
    router.add("GET", "/docs", page);
    router.add("GET", "/redoc", page);
}

}  // namespace opensandbox::server
