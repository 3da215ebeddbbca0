#include "egress/guard/reply.hpp"
#include "egress/role/enforcer_parts.hpp"

namespace opensandbox::egress {

namespace {

constexpr std::string_view kSandboxes = "/sandboxes/";

}  // namespace

/// The rest of the path, behind the sandbox's id, is the API's own.
Awaitable<void> Enforcer::Parts::answer(http::Exchange& exchange) {
    const std::string target = exchange.request().target;
    const std::string_view path = exchange.request().path();
    if (path == "/healthz") {
        const std::string& method = exchange.request().method;
        http::Response health(200, "text/plain; charset=utf-8", "ok");
        if (method != "GET" && method != "HEAD") health = method_not_allowed("GET");
        co_await exchange.respond(std::move(health));
        co_return;
    }
    GuardPtr guard;
    if (path.starts_with(kSandboxes)) {
        const std::size_t end = path.find('/', kSandboxes.size());
        if (end != std::string_view::npos) {
            guard = guards.of_id(path.substr(kSandboxes.size(), end - kSandboxes.size()));
            exchange.request().target = target.substr(end);
        }
    }
    if (!guard) {
        co_await exchange.respond(text_error(404, "not found"));
        co_return;
    }
    co_await guard->answer(exchange);
}

}  // namespace opensandbox::egress
