#include "opensandbox/code.hpp"

#include "opensandbox/sandbox.hpp"
#include "sdk/event_source.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire_code.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kMaxOutput = std::size_t{16} << 20;

std::string context_target(std::string_view id) {
    return "/code/contexts/" + http::percent_encode(id);
}

std::string language_query(const std::string& language) {
    return language.empty() ? std::string() : "?language=" + http::percent_encode(language);
}

void collect(const Event& event, CodeExecution& into) {
    auto append = [&](std::string& to) {
        to.append(event.text, 0, kMaxOutput - std::min(kMaxOutput, to.size()));
    };
    switch (event.type) {
        case EventType::init: into.context_id = event.text; break;
        case EventType::standard_output: append(into.output); break;
        case EventType::standard_error: append(into.error_output); break;
        case EventType::result: into.results.push_back(event.results); break;
        case EventType::error: into.error = event.error; break;
        default: break;
    }
}

}  // namespace

Code::Code(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent)
    : transport_(std::move(transport)), agent_(std::move(agent)) {}

Awaitable<Result<CodeContext>> Code::create_context(std::string language,
                                                    std::string working_directory) const {
    Call call("POST", "/code/context", wire::encode_code_context(language, working_directory));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_code_context(reply->body);
}

Awaitable<Result<std::vector<CodeContext>>> Code::contexts(std::string language) const {
    Call call("GET", "/code/contexts" + language_query(language));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_code_contexts(reply->body);
}

Awaitable<Result<CodeContext>> Code::context(std::string id) const {
    Call call("GET", context_target(id));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_code_context(reply->body);
}

Awaitable<Status> Code::remove_context(std::string id) const {
    Call call("DELETE", context_target(id));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Status> Code::remove_contexts(std::string language) const {
    if (language.empty()) co_return Error(ErrorCode::invalid_argument, "language: must be given");
    Call call("DELETE", "/code/contexts" + language_query(language));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Result<EventStream>> Code::stream(CodeRequest request) const {
    if (request.code.empty()) {
        co_return Error(ErrorCode::invalid_argument, "code: must not be empty");
    }
    if (request.context_id.empty() && request.language.empty()) {
        co_return Error(ErrorCode::invalid_argument, "a context or a language must be given");
    }
    Call call("POST", "/code", wire::encode_code(request));
    co_return co_await open_events(*transport_, agent_, std::move(call));
}

Awaitable<Result<CodeExecution>> Code::run(CodeRequest request) const {
    auto stream = co_await this->stream(std::move(request));
    if (!stream) co_return stream.error();
    CodeExecution execution;
    bool finished = false;
    for (;;) {
        auto event = co_await stream->next();
        if (!event) co_return event.error();
        if (!event->has_value()) break;
        collect(**event, execution);
        finished = finished || (*event)->type == EventType::error ||
                   (*event)->type == EventType::execution_complete;
    }
    if (!finished) {
        co_return Error(ErrorCode::bad_gateway,
                        "the event stream ended without saying how the run ended");
    }
    co_return execution;
}

Awaitable<Status> Code::interrupt(std::string context_id) const {
    Call call("DELETE", "/code?id=" + http::percent_encode(context_id));
    auto reply = co_await transport_->exchange_once(agent_, std::move(call),
                                                    transport_->config().request_timeout);
    if (!reply) co_return reply.error();
    co_return Status();
}

Code Sandbox::code() const {
    return {connection_.transport(), agent_};
}

}  // namespace opensandbox::sdk
