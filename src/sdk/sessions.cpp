#include "opensandbox/sessions.hpp"

#include "opensandbox/sandbox.hpp"
#include "sdk/event_source.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

namespace {

std::string bash_session_target(std::string_view id, std::string_view rest = "") {
    return "/session/" + http::percent_encode(id) + std::string(rest);
}

std::optional<Error> refuse_empty_text(std::string_view what, std::string_view text) {
    if (!text.empty()) return std::nullopt;
    return Error(ErrorCode::invalid_argument, "the " + std::string(what) + " is empty");
}

}  // namespace

Sessions::Sessions(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent)
    : transport_(std::move(transport)), agent_(std::move(agent)) {}

Sessions Sandbox::sessions() const {
    return {connection_.transport(), agent_};
}

Awaitable<Result<std::string>> Sessions::create(std::string working_directory) const {
    Call call("POST", "/session", wire::encode_session(working_directory));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_session_id(reply->body);
}

Awaitable<Result<EventStream>> Sessions::stream(std::string id, SessionRequest request) const {
    if (auto refused = refuse_empty_text("session id", id)) co_return *refused;
    if (auto refused = refuse_empty_text("command", request.command)) co_return *refused;
    Call call("POST", bash_session_target(id, "/run"), wire::encode_session_run(request));
    co_return co_await open_events(*transport_, agent_, std::move(call));
}

Awaitable<Result<Execution>> Sessions::run(std::string id, SessionRequest request,
                                           OutputHandlers handlers) const {
    auto stream = co_await this->stream(std::move(id), std::move(request));
    if (!stream) co_return stream.error();
    co_return co_await run_to_end(std::move(*stream), std::move(handlers));
}

Awaitable<Status> Sessions::remove(std::string id) const {
    if (auto refused = refuse_empty_text("session id", id)) co_return *refused;
    Call call("DELETE", bash_session_target(id));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

}  // namespace opensandbox::sdk
