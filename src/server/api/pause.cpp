#include "lifecycle/lifecycle.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/error_response.hpp"

namespace opensandbox::server {
namespace {

Awaitable<void> respond(http::Exchange& exchange, Status done) {
    http::Response response(202);
    if (!done) response = error_response(done.error());
    co_await exchange.respond(std::move(response));
}

Awaitable<void> pause(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    auto done = co_await lifecycle.pause(sandbox_id_of(exchange));
    co_await respond(exchange, std::move(done));
}

Awaitable<void> resume(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange) {
    auto done = co_await lifecycle.resume(sandbox_id_of(exchange));
    co_await respond(exchange, std::move(done));
}

}  // namespace

void add_pause_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount) {
    using http::Exchange;
    std::string one = std::string(mount) + "/sandboxes/{sandbox_id}";
    lifecycle::Lifecycle* l = &lifecycle;
    router.add("POST", one + "/pause", [l](Exchange& x) { return pause(*l, x); });
    router.add("POST", one + "/resume", [l](Exchange& x) { return resume(*l, x); });
}

}  // namespace opensandbox::server
