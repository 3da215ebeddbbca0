#include "opensandbox/pty.hpp"

#include "opensandbox/sandbox.hpp"
#include "sdk/transport.hpp"
#include "sdk/wire_code.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::uint16_t kTakenOver = 4001;

std::string session_target(std::string_view id, std::string_view after = {}) {
    return "/pty/" + http::percent_encode(id) + std::string(after);
}

std::string attach_query(const AttachOptions& options) {
    std::vector<std::pair<std::string, std::string>> items;
    if (options.since != 0) items.emplace_back("since", std::to_string(options.since));
    if (options.viewer) items.emplace_back("mode", "viewer");
    if (options.takeover) items.emplace_back("takeover", "1");
    if (options.pipes) {
        items.emplace_back("pty", "0");
        items.emplace_back("streams", "1");
    }
    return items.empty() ? std::string() : "?" + encode_query(items);
}

}  // namespace

struct TerminalConnection::State {
    State(std::unique_ptr<http::WebSocketConnection> s, std::uint64_t from)
        : socket(std::move(s)), offset(from) {}
    std::unique_ptr<http::WebSocketConnection> socket;
    std::uint64_t offset;
};

TerminalConnection::TerminalConnection(std::shared_ptr<State> state) : state_(std::move(state)) {}
TerminalConnection::TerminalConnection(TerminalConnection&&) noexcept = default;
TerminalConnection& TerminalConnection::operator=(TerminalConnection&&) noexcept = default;
TerminalConnection::~TerminalConnection() = default;

std::uint64_t TerminalConnection::offset() const {
    return state_->offset;
}

void TerminalConnection::abort() {
    state_->socket->abort();
}

Awaitable<Result<TerminalEvent>> TerminalConnection::next() {
    auto state = state_;
    auto message = co_await state->socket->receive();
    if (!message) co_return to_public(message.error().within("the terminal"));
    switch (message->kind) {
        case http::WebSocketMessage::Kind::text:
            co_return wire::decode_terminal_text(message->data);
        case http::WebSocketMessage::Kind::binary:
            co_return wire::decode_terminal_output(std::move(message->data), state->offset);
        case http::WebSocketMessage::Kind::close: break;
    }
    if (message->code == kTakenOver) {
        co_return TerminalEvent(TerminalEvent::Kind::taken_over);
    }
    co_return Error(ErrorCode::bad_gateway, "the terminal's connection was closed (" +
                                                std::to_string(message->code) + " " +
                                                message->data + ")");
}

Awaitable<Status> TerminalConnection::send_input(std::string_view bytes) {
    // Frames of a client may have 4 MiB.
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    auto state = state_;
    std::string frame;
    while (!bytes.empty()) {
        frame.assign(1, '\0');
        frame += bytes.substr(0, kPiece);
        bytes.remove_prefix(std::min(kPiece, bytes.size()));
        auto sent = co_await state->socket->send_binary(frame);
        if (!sent) co_return to_public(sent.error().within("the terminal"));
    }
    co_return Status();
}

Awaitable<Status> TerminalConnection::resize(std::uint16_t columns, std::uint16_t rows) {
    auto state = state_;
    const std::string text = wire::encode_resize(columns, rows);
    auto sent = co_await state->socket->send_text(text);
    if (!sent) co_return to_public(sent.error().within("the terminal"));
    co_return Status();
}

Awaitable<Status> TerminalConnection::signal(std::string name) {
    auto state = state_;
    const std::string text = wire::encode_signal(name);
    auto sent = co_await state->socket->send_text(text);
    if (!sent) co_return to_public(sent.error().within("the terminal"));
    co_return Status();
}

Terminals::Terminals(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent)
    : transport_(std::move(transport)), agent_(std::move(agent)) {}

Awaitable<Result<std::string>> Terminals::create(TerminalOptions options) const {
    Call call("POST", "/pty", wire::encode_terminal(options));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_terminal_id(reply->body);
}

Awaitable<Result<TerminalInfo>> Terminals::info(std::string session_id) const {
    Call call("GET", session_target(session_id));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_terminal(reply->body);
}

Awaitable<Result<TerminalConnection>> Terminals::attach(std::string session_id,
                                                        AttachOptions options) const {
    auto socket = co_await transport_->open_websocket(
        agent_, session_target(session_id, "/ws" + attach_query(options)));
    if (!socket) co_return socket.error();
    co_return TerminalConnection(
        std::make_shared<TerminalConnection::State>(std::move(*socket), options.since));
}

Awaitable<Status> Terminals::remove(std::string session_id) const {
    Call call("DELETE", session_target(session_id));
    auto reply = co_await transport_->exchange(agent_, std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

Terminals Sandbox::terminals() const {
    return {connection_.transport(), agent_};
}

}  // namespace opensandbox::sdk
