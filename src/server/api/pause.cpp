#include "server/api/request_body.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"

namespace opensandbox::server {
namespace {

Awaitable<void> respond(http::Exchange& exchange, Status done) {
    http::Response response(202);
    if (!done) response = error_response(done.error());
    co_await exchange.respond(std::move(response));
}

Awaitable<void> pause(Services& services, http::Exchange& exchange) {
    auto done = co_await services.lifecycle.pause(sandbox_id_of(exchange));
    co_await respond(exchange, std::move(done));
}

Awaitable<void> resume(Services& services, http::Exchange& exchange) {
    auto done = co_await services.lifecycle.resume(sandbox_id_of(exchange));
    co_await respond(exchange, std::move(done));
}

}  // namespace

void add_pause_routes(http::Router& router, Services& services, Mount mount) {
    using http::Exchange;
    std::string one = std::string(mount) + "/sandboxes/{sandbox_id}";
    Services* s = &services;
    router.add("POST", one + "/pause", [s](Exchange& x) { return pause(*s, x); });
    router.add("POST", one + "/resume", [s](Exchange& x) { return resume(*s, x); });
}

}  // namespace opensandbox::server
