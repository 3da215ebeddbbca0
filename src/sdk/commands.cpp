#include "opensandbox/commands.hpp"

#include "sdk/event_source.hpp"
#include "sdk/event_stream.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

#include <boost/asio/post.hpp>

#include <charconv>
#include <cstring>

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kPiece = 64 * 1024;
constexpr std::string_view kCursorField = "EXECD-COMMANDS-TAIL-CURSOR";

std::optional<Error> check(const CommandRequest& request) {
    if (request.command.empty() == request.argv.empty()) {
        return Error(ErrorCode::invalid_argument,
                     "exactly one of command and argv must be given, and not be empty");
    }
    if (request.gid && !request.uid) {
        return Error(ErrorCode::invalid_argument, "gid: only together with uid");
    }
    return std::nullopt;
}

void collect(std::string_view text, std::string& into, std::size_t limit, bool& truncated) {
    const std::size_t room = limit - std::min(limit, into.size());
    if (text.size() > room) truncated = true;
    into.append(text.substr(0, room));
}

void take_output(const Event& event, const OutputHandlers& handlers, Execution& execution) {
    const bool standard = event.type == EventType::standard_output;
    const auto& handler = standard ? handlers.on_output : handlers.on_error_output;
    if (handler) {
        handler(event.text);
    } else {
        collect(event.text, standard ? execution.output : execution.error_output,
                handlers.max_output, execution.truncated);
    }
}

std::string command_target(std::string_view before, std::string_view id, std::string_view after) {
    return std::string(before) + http::percent_encode(id) + std::string(after);
}

}  // namespace

struct EventStream::State {
    State(asio::any_io_executor ex, std::unique_ptr<http::ClientResponse> r)
        : executor(std::move(ex)), response(std::move(r)) {}
    asio::any_io_executor executor;
    std::unique_ptr<http::ClientResponse> response;
    EventStreamParser parser;
    bool ended = false;
};

EventStream::EventStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
EventStream::EventStream(EventStream&&) noexcept = default;
EventStream& EventStream::operator=(EventStream&&) noexcept = default;
EventStream::~EventStream() = default;

void EventStream::abort() {
    state_->response->abort();
}

Awaitable<Result<std::optional<Event>>> EventStream::next() {
    State& state = *state_;
    for (;;) {
        std::string_view frame;
        auto found = state.parser.next(frame);
        if (!found) co_return found.error();
        if (*found) {
            auto event = wire::decode_event(frame);
            if (!event) co_return event.error().within("event stream");
            co_return std::optional<Event>(std::move(*event));
        }
        if (state.ended) co_return std::optional<Event>();
        // A stream that is always ready would keep timers, signals and other streams waiting.
        co_await asio::post(state.executor, asio::use_awaitable);
        std::span<char> into(state.parser.prepare(kPiece), kPiece);
        auto count = co_await state.response->body().read_some(into);
        if (!count) co_return to_public(count.error().within("event stream"));
        state.parser.commit(*count);
        if (*count == 0) {
            state.parser.finish();
            state.ended = true;
        }
    }
}

Awaitable<Result<EventStream>> open_events(Transport& transport, std::shared_ptr<const Route> agent,
                                           Call call) {
    call.fields.set("Accept", "text/event-stream");
    auto response = co_await transport.open(std::move(agent), std::move(call));
    if (!response) co_return response.error();
    co_return EventStream(
        std::make_unique<EventStream::State>(transport.executor(), std::move(*response)));
}

Awaitable<Result<Execution>> run_to_end(EventStream stream, OutputHandlers handlers) {
    Execution execution;
    bool finished = false;
    for (;;) {
        auto event = co_await stream.next();
        if (!event) co_return event.error();
        if (!event->has_value()) break;
        const Event& what = **event;
        if (handlers.on_event) handlers.on_event(what);
        switch (what.type) {
            case EventType::init: execution.id = what.text; break;
            case EventType::standard_output:
            case EventType::standard_error: take_output(what, handlers, execution); break;
            default: finished = apply_terminal_event(what, execution) || finished;
        }
    }
    if (!finished) {
        co_return Error(ErrorCode::bad_gateway,
                        "the event stream ended without saying how the command ended");
    }
    co_return execution;
}

Commands::Commands(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent)
    : transport_(std::move(transport)), agent_(std::move(agent)) {}

Awaitable<Result<EventStream>> Commands::stream(CommandRequest request) const {
    if (auto refused = check(request)) co_return *refused;
    Call call("POST", "/command", wire::encode_command(request, false));
    co_return co_await open_events(*transport_, agent_, std::move(call));
}

Awaitable<Result<Execution>> Commands::run(CommandRequest request, OutputHandlers handlers) const {
    auto stream = co_await this->stream(std::move(request));
    if (!stream) co_return stream.error();
    co_return co_await run_to_end(std::move(*stream), std::move(handlers));
}

Awaitable<Result<std::string>> Commands::start(CommandRequest request) const {
    if (auto refused = check(request)) co_return *refused;
    Call call("POST", "/command", wire::encode_command(request, true));
    auto stream = co_await open_events(*transport_, agent_, std::move(call));
    if (!stream) co_return stream.error();
    std::string id;
    for (;;) {
        auto event = co_await stream->next();
        if (!event) co_return event.error();
        if (!event->has_value()) break;
        const Event& what = **event;
        if (what.type == EventType::init) id = what.text;
        if (what.type == EventType::error) {
            co_return Error(ErrorCode::internal, what.error.name + ": " + what.error.value);
        }
    }
    if (id.empty()) co_return Error(ErrorCode::protocol, "the event stream named no execution");
    co_return id;
}

Awaitable<Result<CommandStatus>> Commands::status(std::string id) const {
    Call call("GET", command_target("/command/status/", id, ""));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_command_status(reply->body);
}

Awaitable<Result<CommandPage>> Commands::list(CommandFilter filter) const {
    std::vector<std::pair<std::string, std::string>> items{{"limit", std::to_string(filter.limit)}};
    if (filter.running) items.emplace_back("running", *filter.running ? "true" : "false");
    if (!filter.cursor.empty()) items.emplace_back("cursor", filter.cursor);
    Call call("GET", "/command?" + encode_query(items));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_command_page(reply->body);
}

Awaitable<Result<CommandLogs>> Commands::logs(std::string id, std::int64_t cursor) const {
    std::string target = command_target("/command/", id, "/logs");
    if (cursor != 0) target += "?cursor=" + std::to_string(cursor);
    Call call("GET", std::move(target));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    CommandLogs logs;
    logs.content = std::move(reply->body);
    if (auto text = reply->fields.get(kCursorField)) {
        std::int64_t value = 0;
        auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), value);
        if (failed == std::errc()) logs.cursor = value;
    }
    co_return logs;
}

Awaitable<Status> Commands::interrupt(std::string id) const {
    Call call("DELETE", "/command?id=" + http::percent_encode(id));
    auto reply = co_await transport_->exchange_once(agent_, std::move(call),
                                                    transport_->config().request_timeout);
    if (!reply) co_return reply.error();
    co_return Status();
}

}  // namespace opensandbox::sdk
