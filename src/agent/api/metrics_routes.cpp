#include "agent/api/routes.hpp"
#include "agent/ground/reply.hpp"
#include "http/event_stream.hpp"
#include "net/task.hpp"

namespace opensandbox::agent {
namespace {

constexpr std::chrono::seconds kWatchEvery{1};

Awaitable<void> metrics(Services& services, http::Exchange& exchange) {
    std::string body = co_await services.metrics.read();
    co_await reply_json(exchange, 200, std::move(body));
}

/// One object a line until the client leaves.
Awaitable<void> watch_metrics(Services& services, http::Exchange& exchange) {
    Status sent = co_await exchange.start(http::event_stream_head());
    while (sent && !services.stopping) {
        std::string line = co_await services.metrics.read();
        line += '\n';
        sent = co_await exchange.write(line);
        if (sent) co_await net::sleep_for(kWatchEvery);
    }
    if (sent) sent = co_await exchange.finish();
}

}  // namespace

void add_metrics_routes(http::Router& router, Services& services) {
    router.add("GET", "/metrics",
               [&services](http::Exchange& exchange) { return metrics(services, exchange); });
    router.add("GET", "/metrics/watch",
               [&services](http::Exchange& exchange) { return watch_metrics(services, exchange); });
}

}  // namespace opensandbox::agent
