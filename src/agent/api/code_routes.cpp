#include "agent/api/routes.hpp"
#include "agent/code/request.hpp"
#include "agent/files/replacement_file.hpp"
#include "agent/ground/reply.hpp"
#include "agent/stream/event_pump.hpp"
#include "base/identifier.hpp"

#include <algorithm>
#include <filesystem>

namespace opensandbox::agent {
namespace {

using ContextPtr = CodeContexts::ContextPtr;

/// Runs that may wait for their turn in one context.
constexpr std::size_t kMaxWaitingRuns = 64;

/// Errors of this part are 400 or 500: clients know no others (execd contract 1.4).
Awaitable<void> reply_failure(http::Exchange& exchange, Error error) {
    if (error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::too_large) {
        co_await reply_error(exchange, error);
    } else {
        co_await reply_error(exchange, 500, code::kRuntimeError, error.message());
    }
}

Awaitable<void> reply_no_context(http::Exchange& exchange, std::string id) {
    co_await reply_error(exchange, 404, code::kContextNotFound, "no such code context: " + id);
}

RunEnd failed_run(const Error& error) {
    return {"RuntimeError", error.message(), {error.message()}};
}

/// The run itself; goes on when its reader leaves.
Awaitable<void> execute(Services& services, ContextPtr context, std::string code,
                        std::shared_ptr<EventPump> pump, RunQueue::Turn turn) {
    if (context->removed) {
        pump->end(failed_run(Error(ErrorCode::not_found, "the code context was deleted")));
        co_return;
    }
    auto began = Telemetry::Clock::now();
    Status done = co_await context->kernel->run(std::move(code), pump);
    if (!done) pump->end(failed_run(done.error()));
    services.telemetry.execution("run_code", !pump->failed(), Telemetry::Clock::now() - began);
}

/// Waits for the turn, which is over when the run is and its output was read to the end.
Awaitable<void> take_turn(Services& services, ContextPtr context, std::string code,
                          std::shared_ptr<EventPump> pump, std::shared_ptr<RunQueue::Turn> held) {
    *held = co_await context->queue->take();
    co_await execute(services, context, std::move(code), pump, *held);
}

Awaitable<void> finish_unread(std::shared_ptr<EventPump> pump,
                              std::shared_ptr<RunQueue::Turn> held) {
    co_await EventPump::run_unread(pump);
}

Awaitable<void> run_in_context(Services& services, http::Exchange& exchange, ContextPtr context,
                               std::string code) {
    if (context->queue->waiting() >= kMaxWaitingRuns) {
        co_await reply_error(exchange, 500, code::kRuntimeError,
                             "too many runs are waiting for code context " + context->id);
        co_return;
    }
    auto pump = std::make_shared<EventPump>(services.executor, context->id, LineForm::exact);
    auto held = std::make_shared<RunQueue::Turn>();
    net::spawn(services.executor, take_turn(services, context, std::move(code), pump, held),
               "code");
    bool complete = co_await EventPump::stream(pump, exchange);
    if (!complete) net::spawn(services.executor, finish_unread(pump, held), "code unread");
}

/// Languages that are no kernels' (execd contract 5.1).
Awaitable<void> run_other(Services& services, http::Exchange& exchange, CodeRequest request) {
    if (request.command() || request.background()) {
        CommandRequest command;
        command.command = std::move(request.code);
        command.background = request.background();
        if (command.command.find('\0') != std::string::npos) {
            co_await reply_error(exchange, 400, code::kInvalidBody, "code: must not hold NUL");
            co_return;
        }
        co_await run_command_request(services, exchange, std::move(command));
        co_return;
    }
    std::string message = request.language == "sql"
                              ? "sql is not supported: this agent has no SQL client"
                              : "error running codes unknown language: " + request.language;
    co_await reply_error(exchange, 500, code::kRuntimeError, message);
}

Awaitable<void> run_code(Services& services, http::Exchange& exchange) {
    Result<json::value> body = co_await read_json(exchange);
    Result<CodeRequest> request = body ? parse_code_request(*body) : body.error();
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    if (!request->context.empty()) {
        ContextPtr context = co_await services.code.find(request->context);
        if (!context) {
            co_await reply_no_context(exchange, request->context);
        } else {
            co_await run_in_context(services, exchange, context, std::move(request->code));
        }
        co_return;
    }
    if (!CodeContexts::knows(request->language)) {
        co_await run_other(services, exchange, std::move(*request));
        co_return;
    }
    auto context = co_await services.code.default_for(request->language);
    if (context) {
        co_await run_in_context(services, exchange, *context, std::move(request->code));
    } else {
        co_await reply_failure(exchange, context.error());
    }
}

/// An absolute path of a directory that exists now; empty for none.
Awaitable<Result<std::string>> make_context_directory(Services& services, std::string wanted) {
    if (wanted.empty()) co_return wanted;
    Result<std::string> path = expand_directory(wanted, services.environment);
    if (!path) co_return path;
    std::string absolute = std::filesystem::absolute(*path).lexically_normal().string();
    std::function<Result<std::string>()> make = [absolute]() -> Result<std::string> {
        if (Status made = make_directories(absolute); !made) return made.error();
        return absolute;
    };
    co_return co_await services.files.run(identity_of(services.processes.user), std::move(make));
}

Awaitable<void> create_context(Services& services, http::Exchange& exchange) {
    Result<json::value> body = co_await read_json(exchange);
    Result<ContextRequest> request = body ? parse_context_request(*body) : body.error();
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    if (!CodeContexts::knows(request->language)) {
        co_await reply_error(
            exchange, 500, code::kRuntimeError,
            "error creating a code context, unknown language: " + request->language);
        co_return;
    }
    auto cwd = co_await make_context_directory(services, request->cwd);
    if (!cwd) {
        co_await reply_failure(exchange, cwd.error());
        co_return;
    }
    auto context = co_await services.code.create(request->language, *cwd);
    if (!context) {
        co_await reply_failure(exchange, context.error());
        co_return;
    }
    json::object out{{"id", (*context)->id}, {"language", (*context)->language}};
    if (!cwd->empty()) out.emplace("cwd", *cwd);
    co_await reply_json(exchange, 200, json::serialize(json::value(std::move(out))));
}

/// The language of the query; empty after an error was sent.
Awaitable<std::optional<std::string>> language_of(http::Exchange& exchange, bool required) {
    http::Query query(exchange.request().query());
    std::string language(query.get("language").value_or(""));
    if (language.empty() && required) {
        co_await reply_error(exchange, 400, code::kMissingQuery,
                             "query parameter language is required");
        co_return std::nullopt;
    }
    if (language == "command" || language == "background-command" || language == "sql") {
        co_await reply_error(exchange, 500, code::kRuntimeError,
                             language + " has no code contexts");
        co_return std::nullopt;
    }
    co_return language;
}

Awaitable<void> list_contexts(Services& services, http::Exchange& exchange) {
    auto language = co_await language_of(exchange, false);
    if (!language) co_return;
    auto contexts = co_await services.code.list(*language);
    std::string body = "[";
    for (const ContextPtr& context : contexts)
        body += (body.size() > 1 ? "," : "") + context->json();
    body += ']';
    co_await reply_json(exchange, 200, std::move(body));
}

Awaitable<void> remove_contexts(Services& services, http::Exchange& exchange) {
    auto language = co_await language_of(exchange, true);
    if (!language) co_return;
    auto contexts = co_await services.code.list(*language);
    Status failed;
    for (const ContextPtr& context : contexts) {
        Status removed = co_await services.code.remove(context);
        // Another request may have been faster.
        if (!removed && removed.error().code() != ErrorCode::not_found) failed = removed;
    }
    if (failed) {
        co_await reply_empty(exchange);
    } else {
        co_await reply_failure(exchange, failed.error());
    }
}

Awaitable<void> get_context(Services& services, http::Exchange& exchange) {
    std::string id(exchange.parameter("id"));
    ContextPtr context = co_await services.code.find(id);
    if (context) {
        co_await reply_json(exchange, 200, context->json());
    } else {
        co_await reply_no_context(exchange, id);
    }
}

Awaitable<void> remove_context(Services& services, http::Exchange& exchange) {
    std::string id(exchange.parameter("id"));
    ContextPtr context = co_await services.code.find(id);
    Status removed = Error(ErrorCode::not_found, "");
    if (context) removed = co_await services.code.remove(context);
    if (removed) {
        co_await reply_empty(exchange);
    } else if (removed.error().code() == ErrorCode::not_found) {
        co_await reply_no_context(exchange, id);
    } else {
        co_await reply_failure(exchange, removed.error());
    }
}

}  // namespace

void add_code_routes(http::Router& router, Services& services) {
    auto bind = [&services](Awaitable<void> (*handler)(Services&, http::Exchange&)) {
        return
            [&services, handler](http::Exchange& exchange) { return handler(services, exchange); };
    };
    router.add("POST", "/code", bind(run_code));
    router.add("POST", "/code/context", bind(create_context));
    router.add("GET", "/code/contexts", bind(list_contexts));
    router.add("DELETE", "/code/contexts", bind(remove_contexts));
    router.add("GET", "/code/contexts/{id}", bind(get_context));
    router.add("DELETE", "/code/contexts/{id}", bind(remove_context));
}

}  // namespace opensandbox::agent
