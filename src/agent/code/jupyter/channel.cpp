#include "agent/code/jupyter/kernel.hpp"
#include "base/log.hpp"
#include "net/task.hpp"

#include <optional>

namespace opensandbox::agent::jupyter {
namespace {

using Opened = Result<std::unique_ptr<http::WebSocketConnection>>;

/// A handshake that may be given up while it goes on: the server answers it only when the kernel
/// is up.
struct Handshake {
    explicit Handshake(asio::any_io_executor executor) : done(std::move(executor)) {}
    net::Event done;
    std::optional<Opened> result;
};

Awaitable<void> shake_hands(std::shared_ptr<Handshake> handshake, std::shared_ptr<Server> server,
                            std::string kernel_id, std::string session_id) {
    Opened opened = co_await server->open_channels(std::move(kernel_id), std::move(session_id));
    handshake->result.emplace(std::move(opened));
    handshake->done.notify();
}

Result<Message> message_of(const http::WebSocketMessage& received) {
    return received.kind == http::WebSocketMessage::Kind::binary
               ? parse_binary_message(received.data)
               : parse_message(received.data);
}

}  // namespace

struct Channel::State {
    explicit State(std::unique_ptr<http::WebSocketConnection> c) : connection(std::move(c)) {}
    std::unique_ptr<http::WebSocketConnection> connection;
    std::shared_ptr<Run> run;
    bool open = true;
};

Awaitable<Result<std::shared_ptr<Channel>>> Channel::open(std::shared_ptr<Server> server,
                                                          std::string kernel_id,
                                                          std::string session_id,
                                                          std::shared_ptr<Run> run) {
    auto handshake = std::make_shared<Handshake>(server->executor());
    net::spawn(server->executor(),
               shake_hands(handshake, server, std::move(kernel_id), std::move(session_id)),
               "kernel handshake");
    co_await handshake->done.wait_for(server->limits().start);
    std::optional<Opened> result = std::move(handshake->result);
    if (!result) {
        co_return Error(ErrorCode::timeout, "Jupyter: the kernel did not get ready in time");
    }
    Opened& opened = *result;
    if (!opened) co_return opened.error();
    auto channel = std::make_shared<Channel>(std::move(*opened));
    channel->deliver_to(std::move(run));
    net::spawn(server->executor(), read(channel->state_), "kernel messages");
    co_return channel;
}

Channel::Channel(std::unique_ptr<http::WebSocketConnection> connection)
    : state_(std::make_shared<State>(std::move(connection))) {}

Channel::~Channel() {
    close();
}

bool Channel::is_open() const {
    return state_->open;
}

void Channel::deliver_to(std::shared_ptr<Run> run) {
    state_->run = std::move(run);
}

Awaitable<Status> Channel::send(std::string text) {
    std::shared_ptr<State> state = state_;
    co_return co_await state->connection->send_text(text);
}

void Channel::close() {
    state_->open = false;
    state_->run.reset();
    state_->connection->abort();
}

Awaitable<void> Channel::read(std::shared_ptr<State> state) {
    while (state->open) {
        auto received = co_await state->connection->receive();
        if (!received || received->kind == http::WebSocketMessage::Kind::close) break;
        std::shared_ptr<Run> run = state->run;
        if (!run) continue;
        Result<Message> message = message_of(*received);
        received->data = {};
        if (!message) {
            log::debug("kernel message dropped", {{"error", message.error().message()}});
            continue;
        }
        co_await run->take(std::move(*message));
    }
    state->open = false;
    state->connection->abort();
    if (std::shared_ptr<Run> run = std::move(state->run)) run->connection_lost();
}

}  // namespace opensandbox::agent::jupyter
