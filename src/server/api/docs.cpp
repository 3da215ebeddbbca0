#include "server/api/routes.hpp"

#include <array>

namespace opensandbox::server {
namespace {

/// The OpenAPI documents of specs/ as one JSON document, its version the program's; made when the
/// program is built, as is the page.
constexpr unsigned char kOpenApi[] = {
#include "server/docs/openapi.json.inc"
};

/// Shows the document and sends requests; it loads nothing from anywhere else.
constexpr unsigned char kPage[] = {
#include "server/docs/page.html.inc"
};

template <std::size_t Size>
std::string text_of(const unsigned char (&bytes)[Size]) {
    return {reinterpret_cast<const char*>(bytes), Size};
}

struct PageField {
    const char* name;
    const char* value;
};

/// The page may run its own script and ask this server, and nothing else. Keys are typed there: no
/// other page frames it, opens it with a hold on its window, or loads it as a part of itself.
constexpr std::array kPageFields{
    PageField{"Content-Security-Policy",
              "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
              "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    PageField{"X-Frame-Options", "DENY"},
    PageField{"Cross-Origin-Opener-Policy", "same-origin"},
    PageField{"Cross-Origin-Resource-Policy", "same-origin"},
    PageField{"X-Content-Type-Options", "nosniff"},
    PageField{"Referrer-Policy", "no-referrer"},
};

Awaitable<void> openapi(http::Exchange& exchange) {
    auto response = http::json_response(200, text_of(kOpenApi));
    co_await exchange.respond(std::move(response));
}

/// `/docs` and `/redoc` are one page: it looks at where it was loaded from.
Awaitable<void> page(http::Exchange& exchange) {
    http::Response response(200, "text/html; charset=utf-8", text_of(kPage));
    for (const auto& [name, value] : kPageFields)
        response.head.fields.set(name, value);
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_docs_routes(http::Router& router) {
    router.add("GET", "/openapi.json", openapi);
    router.add("GET", "/docs", page);
    router.add("GET", "/redoc", page);
}

}  // namespace opensandbox::server
