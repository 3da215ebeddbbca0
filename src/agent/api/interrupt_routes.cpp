#include "agent/api/routes.hpp"
#include "agent/command/background.hpp"
#include "agent/ground/reply.hpp"

#include <optional>

namespace opensandbox::agent {
namespace {

/// Empty when the id is none of these.
using Interrupted = std::optional<Status>;

Awaitable<Interrupted> interrupt_context(Services& services, std::string id) {
    auto context = services.code.known(id);
    if (!context) co_return std::nullopt;
    Status done = co_await context->kernel->interrupt();
    co_return done;
}

/// Asks the Jupyter server, so it comes last.
Awaitable<Interrupted> interrupt_recovered(Services& services, std::string id) {
    co_await services.code.find(id);
    co_return co_await interrupt_context(services, std::move(id));
}

Awaitable<Interrupted> interrupt_command(Services& services, std::string id) {
    auto record = services.commands.find(id);
    if (!record) co_return std::nullopt;
    Status done = co_await interrupt(services.executor, services.reaper, record);
    co_return done;
}

/// A session goes with its run (execd contract 4).
Awaitable<Interrupted> end_session(Services& services, std::string id) {
    if (!services.sessions.erase(id)) co_return std::nullopt;
    co_return Status();
}

/// In the order in which an id is looked up.
constexpr Awaitable<Interrupted> (*kOwners[])(Services&, std::string) = {
    interrupt_context,
    interrupt_command,
    end_session,
    interrupt_recovered,
};

Awaitable<void> interrupt_any(Services& services, http::Exchange& exchange) {
    http::Query query(exchange.request().query());
    std::string id(query.get("id").value_or(""));
    if (id.empty()) {
        co_await reply_error(exchange, 400, code::kMissingQuery, "query parameter id is required");
        co_return;
    }
    for (auto* owner : kOwners) {
        Interrupted interrupted = co_await owner(services, id);
        if (!interrupted) continue;
        if (*interrupted) {
            co_await reply_empty(exchange);
        } else {
            co_await reply_error(exchange, 500, code::kRuntimeError,
                                 interrupted->error().message());
        }
        co_return;
    }
    co_await reply_error(exchange, 500, code::kRuntimeError,
                         "no such command, code context or session: " + id);
}

}  // namespace

void add_interrupt_routes(http::Router& router, Services& services) {
    for (const char* path : {"/command", "/code"}) {
        router.add("DELETE", path, [&services](http::Exchange& exchange) {
            return interrupt_any(services, exchange);
        });
    }
}

}  // namespace opensandbox::agent
