#include "lifecycle/lifecycle.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/error_response.hpp"

#include <array>

namespace opensandbox::server {
namespace {

/// A route of the contract that this server does not have.
struct Missing {
    std::string_view method;
    std::string_view pattern;
    std::string_view code;
    std::string_view what;
};

constexpr std::string_view kTemplates = "FSB::API_NOT_SUPPORTED";

constexpr std::array kMissing{
    Missing{"POST", "/templates", kTemplates, "Template management"},
    Missing{"GET", "/templates", kTemplates, "Template management"},
    Missing{"GET", "/templates/{template}", kTemplates, "Template management"},
    Missing{"DELETE", "/templates/{template}", kTemplates, "Template management"},
};

Awaitable<void> refuse_missing(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange,
                               Missing missing) {
    auto response = error_response(
        501, missing.code,
        std::string(missing.what) + " is not supported by the runtime of this server.");
    if (!exchange.parameter("sandbox_id").empty()) {
        auto known = lifecycle.get(sandbox_id_of(exchange));
        if (!known) response = error_response(known.error());
    }
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_unsupported_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount) {
    lifecycle::Lifecycle* l = &lifecycle;
    for (const Missing& missing : kMissing) {
        const Missing* m = &missing;
        router.add(missing.method, std::string(mount) + std::string(missing.pattern),
                   [l, m](http::Exchange& x) { return refuse_missing(*l, x, *m); });
    }
}

}  // namespace opensandbox::server
