#include "agent/api/line_form.hpp"
#include "agent/api/routes.hpp"
#include "agent/command/background.hpp"
#include "agent/command/execution.hpp"
#include "agent/command/inventory.hpp"
#include "agent/command/request.hpp"
#include "agent/ground/reply.hpp"
#include "http/event_stream.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kLogPage = std::size_t{1} << 20;

/// The whole stream of a background command: it began, or why it could not.
Awaitable<void> run_background(Services& services, http::Exchange& exchange,
                               std::shared_ptr<CommandRecord> record, SpawnRequest request,
                               std::chrono::milliseconds timeout) {
    Status started = start_background(services.executor, services.reaper, services.commands, record,
                                      std::move(request), timeout);
    EventWriter events;
    events.at(to_millis(now()));
    events.init(record->id);
    if (started) {
        events.complete(0);
    } else {
        events.error("CommandExecError", started.error().message(), {started.error().message()});
    }
    Status sent = co_await exchange.start(http::event_stream_head());
    if (sent) sent = co_await exchange.finish_with(events.buffer());
}

Awaitable<void> run_command(Services& services, http::Exchange& exchange) {
    Result<json::value> body = co_await read_json(exchange);
    if (!body) {
        co_await reply_error(exchange, body.error());
        co_return;
    }
    Result<CommandRequest> request = parse_command_request(*body);
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    co_await run_command_request(services, exchange, std::move(*request));
}

Awaitable<void> list_commands(Services& services, http::Exchange& exchange) {
    exchange.response_fields.set("Cache-Control", "no-store");
    auto query = parse_inventory_query(exchange.request().query());
    if (!query) {
        co_await reply_error(exchange, query.error());
        co_return;
    }
    co_await reply_json(exchange, 200, inventory_json(services.commands, *query));
}

Awaitable<void> command_status(Services& services, http::Exchange& exchange) {
    std::string id(exchange.parameter("id"));
    auto record = services.commands.find(id);
    if (!record) {
        co_await reply_error(exchange, 404, code::kInvalidBody, "command not found: " + id);
        co_return;
    }
    co_await reply_json(exchange, 200, record->status_json());
}

/// A missing or unreadable number is 0, a negative one is wrong (execd contract 3.5).
std::int64_t position_of(http::Exchange& exchange, std::string_view name) {
    http::Query query(exchange.request().query());
    std::string_view text = query.get(name).value_or("");
    std::int64_t cursor = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cursor);
    return error == std::errc() && end == text.data() + text.size() ? cursor : 0;
}

Awaitable<void> command_logs(Services& services, http::Exchange& exchange) {
    std::string id(exchange.parameter("id"));
    std::int64_t cursor = position_of(exchange, "cursor");
    if (cursor < 0) {
        co_await reply_error(exchange, 400, code::kInvalidBody, "cursor: must not be negative");
        co_return;
    }
    auto record = services.commands.find(id);
    if (!record || !record->output) {
        int status = record ? 400 : 404;
        co_await reply_error(exchange, status, code::kInvalidBody,
                             record ? "command " + id + " does not run in the background"
                                    : "command not found: " + id);
        co_return;
    }
    std::function<Result<OutputPage>()> read = [output = record->output, cursor,
                                                growing = record->running()] {
        return output->read(static_cast<std::uint64_t>(cursor), kLogPage, growing);
    };
    Result<OutputPage> page = co_await services.files.run(std::nullopt, std::move(read));
    if (!page) {
        co_await reply_error(exchange, 500, code::kRuntimeError, page.error().message());
        co_return;
    }
    http::Response response(200, "text/plain; charset=utf-8", std::move(page->bytes));
    response.head.fields.set("EXECD-COMMANDS-TAIL-CURSOR", std::to_string(page->next));
    co_await exchange.respond(std::move(response));
}

/// Ours, beyond the contract: comes back to the stream of a foreground command.
Awaitable<void> command_stream(Services& services, http::Exchange& exchange) {
    std::string id(exchange.parameter("id"));
    std::int64_t offset = position_of(exchange, "offset");
    if (offset < 0) {
        co_await reply_error(exchange, 400, code::kInvalidBody, "offset: must not be negative");
        co_return;
    }
    auto record = services.commands.find(id);
    if (!record) {
        co_await reply_error(exchange, 404, code::kInvalidBody, "command not found: " + id);
        co_return;
    }
    auto execution = record->execution;
    if (!execution) {
        co_await reply_error(exchange, record->output ? 400 : 404, code::kInvalidBody,
                             record->output
                                 ? "command " + id + " runs in the background: ask for its logs"
                                 : "the output of command " + id + " is not kept any more");
        co_return;
    }
    auto wanted = static_cast<std::uint64_t>(offset);
    const Replay& replay = execution->replay();
    std::uint64_t begin = std::clamp(wanted, replay.oldest(), replay.total());
    exchange.response_fields.set("EXECD-COMMANDS-TAIL-CURSOR", std::to_string(begin));
    co_await Execution::stream(execution, exchange, wanted);
}

}  // namespace

Awaitable<void> run_command_request(Services& services, http::Exchange& exchange,
                                    CommandRequest request) {
    Result<SpawnRequest> prepared = prepare_command(services.processes, request);
    if (!prepared) {
        co_await reply_error(exchange, prepared.error());
        co_return;
    }
    auto record = services.commands.add(request.content());
    record->background = request.background;
    if (request.background) {
        co_await run_background(services, exchange, record, std::move(*prepared), request.timeout);
        co_return;
    }
    auto execution =
        Execution::start(services.executor, services.reaper, services.commands, record,
                         std::move(*prepared), line_form_for(services, exchange), request.timeout);
    co_await Execution::stream(execution, exchange);
}

void add_command_routes(http::Router& router, Services& services) {
    auto bind = [&services](Awaitable<void> (*handler)(Services&, http::Exchange&)) {
        return
            [&services, handler](http::Exchange& exchange) { return handler(services, exchange); };
    };
    router.add("POST", "/command", bind(run_command));
    router.add("GET", "/command", bind(list_commands));
    router.add("GET", "/command/status/{id}", bind(command_status));
    router.add("GET", "/command/{id}/stream", bind(command_stream));
    router.add("GET", "/command/{id}/logs", bind(command_logs));
}

}  // namespace opensandbox::agent
