#include "controller/role/probes.hpp"

#include <functional>
#include <memory>

namespace opensandbox::controller {
namespace {

http::Response verdict(bool good) {
    return http::Response(good ? 200 : 503, "text/plain", good ? "ok\n" : "not yet\n");
}

Awaitable<void> answer(std::shared_ptr<const ProbeSources> sources, http::Exchange& exchange) {
    const std::string path(exchange.request().path());
    http::Response response(404, "text/plain", "not found\n");
    if (path == "/healthz") {
        response = verdict(sources->is_healthy());
    } else if (path == "/readyz") {
        response = verdict(sources->is_ready());
    } else if (path == "/metrics") {
        response = http::Response(200, "text/plain; version=0.0.4", sources->metrics());
    }
    co_await exchange.respond(std::move(response));
}

}  // namespace

http::Handler probe_handler(ProbeSources sources) {
    auto kept = std::make_shared<const ProbeSources>(std::move(sources));
    return std::bind_front(answer, std::move(kept));
}

}  // namespace opensandbox::controller
