#include "http/websocket_connection.hpp"

#include "base/base64.hpp"
#include "base/identifier.hpp"
#include "http/input_buffer.hpp"
#include "http/websocket.hpp"
#include "http/websocket_frames.hpp"
#include "net/task.hpp"

#include <cstring>
#include <deque>

namespace opensandbox::http {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kReadSize = std::size_t{16} * 1024;
/// How long an answer to a close or to broken frames may take to be written.
constexpr std::chrono::seconds kLastWords{2};

Error gone(const char* what) {
    return {ErrorCode::bad_gateway, what};
}

}  // namespace

struct WebSocketConnection::State {
    State(Upgraded connection, Side which, std::size_t max_message)
        : executor(connection.stream->executor()),
          input(std::move(connection.stream)),
          side(which),
          decoder(which == Side::server ? WebSocketDecoder::Peer::client
                                        : WebSocketDecoder::Peer::server,
                  max_message) {
        const std::string& early = connection.buffered;
        if (early.empty()) return;
        std::memcpy(input.buffer.prepare(early.size()).data(), early.data(), early.size());
        input.buffer.commit(early.size());
    }

    /// One sender's place in the line of those who want to write.
    class Turn {
      public:
        explicit Turn(State& state) : state_(state), ready_(state.executor) {
            if (state_.line.empty()) ready_.notify();
            state_.line.push_back(this);
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn() {
            bool first = state_.line.front() == this;
            std::erase(state_.line, this);
            if (first && !state_.line.empty()) state_.line.front()->ready_.notify();
        }
        Awaitable<void> come() {
            while (state_.line.front() != this)
                co_await ready_.wait();
        }

      private:
        State& state_;
        net::Event ready_;
    };

    void abort() {
        aborted = true;
        input.stream->close();
    }

    [[nodiscard]] Error ended(const char* what) const {
        if (aborted) return {ErrorCode::cancelled, "the WebSocket was aborted"};
        return gone(what);
    }

    static Awaitable<Status> send(std::shared_ptr<State> state, WebSocketOpcode opcode,
                                  std::string_view bytes);
    static Awaitable<Status> send_close(std::shared_ptr<State> state, std::uint16_t code,
                                        std::string reason);
    static Awaitable<Result<WebSocketMessage>> receive(std::shared_ptr<State> state);
    Awaitable<Status> write_frame(WebSocketOpcode opcode, std::string_view bytes);
    Awaitable<Status> fill();
    static void queue_pong(const std::shared_ptr<State>& state, std::string payload);
    static Awaitable<void> send_pong(std::shared_ptr<State> state);
    static Awaitable<void> say_last(std::shared_ptr<State> state, std::uint16_t code,
                                    std::string reason);
    static Awaitable<void> refuse(std::shared_ptr<State> state, std::uint16_t code,
                                  std::string reason);

    asio::any_io_executor executor;
    Input input;
    Side side;
    WebSocketDecoder decoder;
    std::deque<Turn*> line;           ///< the first one writes
    std::optional<std::string> pong;  ///< due; a newer ping replaces an older one's
    bool aborted = false;
    bool broken = false;
    bool close_sent = false;
    bool close_received = false;
    steady_clock::time_point heard = steady_clock::now();
};

Awaitable<Status> WebSocketConnection::State::write_frame(WebSocketOpcode opcode,
                                                          std::string_view bytes) {
    std::array<std::string_view, 2> pieces;
    std::string header;
    std::string masked;
    if (side == Side::client) {
        WebSocketMask mask{};
        random_bytes(mask.data(), mask.size());
        header = websocket_frame_header(opcode, bytes.size(), &mask);
        masked = bytes;
        apply_websocket_mask(masked, mask, 0);
        bytes = masked;
    } else {
        header = websocket_frame_header(opcode, bytes.size(), nullptr);
    }
    pieces[0] = header;
    pieces[1] = bytes;
    auto written = co_await input.stream->write_all(pieces);
    if (!written) {
        // A frame cut short cannot be repaired: nothing more makes sense over this connection.
        broken = true;
        input.stream->close();
    }
    co_return written;
}

Awaitable<Status> WebSocketConnection::State::send(std::shared_ptr<State> state,
                                                   WebSocketOpcode opcode, std::string_view bytes) {
    Turn turn(*state);
    co_await turn.come();
    if (state->aborted || state->broken) co_return state->ended("the WebSocket broke");
    if (state->close_sent) co_return gone("the WebSocket is closed");
    if (opcode == WebSocketOpcode::close) state->close_sent = true;
    Status written = co_await state->write_frame(opcode, bytes);
    if (!written) co_return state->ended("the WebSocket broke");
    co_return Status();
}

Awaitable<Status> WebSocketConnection::State::send_close(std::shared_ptr<State> state,
                                                         std::uint16_t code, std::string reason) {
    std::string payload = websocket_close_payload(code, reason);
    co_return co_await send(state, WebSocketOpcode::close, payload);
}

void WebSocketConnection::State::queue_pong(const std::shared_ptr<State>& state,
                                            std::string payload) {
    bool due = state->pong.has_value();
    state->pong = std::move(payload);
    if (!due) net::spawn(state->executor, send_pong(state), "WebSocket pong");
}

/// Apart from receive(), which must not wait for a peer that sends pings and does not read.
Awaitable<void> WebSocketConnection::State::send_pong(std::shared_ptr<State> state) {
    Turn turn(*state);
    co_await turn.come();
    std::string payload = std::exchange(state->pong, std::nullopt).value_or("");
    if (state->aborted || state->broken || state->close_sent) co_return;
    co_await state->write_frame(WebSocketOpcode::pong, payload);
}

Awaitable<void> WebSocketConnection::State::say_last(std::shared_ptr<State> state,
                                                     std::uint16_t code, std::string reason) {
    net::Deadline limit(state->executor, kLastWords, [state] {
        state->broken = true;
        state->input.stream->close();
    });
    if (!state->close_sent) co_await send_close(state, code, std::move(reason));
}

/// The end of a connection whose peer broke a rule.
Awaitable<void> WebSocketConnection::State::refuse(std::shared_ptr<State> state, std::uint16_t code,
                                                   std::string reason) {
    co_await say_last(state, code, std::move(reason));
    state->broken = true;
    state->input.stream->shutdown_send();
    // Closing over unread bytes would reset the connection before the peer has read why.
    net::Deadline limit(state->executor, kLastWords, [state] { state->input.stream->close(); });
    std::array<char, 4096> dropped;
    while (true) {
        auto count = co_await state->input.stream->read_some(dropped);
        if (!count || *count == 0) co_return;
    }
}

Awaitable<Status> WebSocketConnection::State::fill() {
    if (input.stream->quiet()) {
        input.buffer.release();
        co_await input.stream->wait_readable();
    }
    auto count = co_await input.fill(kReadSize);
    if (!count) co_return ended("the WebSocket broke");
    if (*count == 0) {
        broken = true;
        co_return ended("the peer ended the connection without closing the WebSocket");
    }
    heard = steady_clock::now();
    // A server that sends its small messages one acknowledgement after the other (Tornado does)
    // would take 40 ms for each.
    if (side == Side::client) input.stream->acknowledge();
    co_return Status();
}

Awaitable<Result<WebSocketMessage>> WebSocketConnection::State::receive(
    std::shared_ptr<State> state) {
    while (true) {
        if (state->aborted || state->broken) co_return state->ended("the WebSocket broke");
        if (state->close_received) co_return gone("the WebSocket is closed");
        std::string_view bytes = state->input.buffer.view();
        std::size_t held = bytes.size();
        auto event = state->decoder.feed(bytes);
        state->input.buffer.consume(held - bytes.size());
        if (!event) {
            Error error = event.error();
            co_await refuse(state, state->decoder.violation(), error.message());
            co_return error;
        }
        std::optional<WebSocketEvent> whole = std::move(*event);
        if (!whole) {
            Status more = co_await state->fill();
            if (!more) co_return more.error();
            continue;
        }
        WebSocketEvent& got = *whole;
        using Kind = WebSocketMessage::Kind;
        if (got.opcode == WebSocketOpcode::ping) {
            queue_pong(state, std::move(got.payload));
        } else if (got.opcode == WebSocketOpcode::close) {
            state->close_received = true;
            co_await say_last(state, got.code, {});
            co_return WebSocketMessage(Kind::close, std::move(got.payload), got.code);
        } else if (got.opcode != WebSocketOpcode::pong) {
            Kind kind = got.opcode == WebSocketOpcode::text ? Kind::text : Kind::binary;
            co_return WebSocketMessage(kind, std::move(got.payload));
        }
    }
}

WebSocketConnection::WebSocketConnection(Upgraded connection, Side side, std::size_t max_message)
    : state_(std::make_shared<State>(std::move(connection), side, max_message)) {}

WebSocketConnection::~WebSocketConnection() {
    state_->abort();
}

// None of these is a coroutine itself: what is in flight outlives this object.
Awaitable<Result<WebSocketMessage>> WebSocketConnection::receive() {
    return State::receive(state_);
}

Awaitable<Status> WebSocketConnection::send_text(std::string_view bytes) {
    return State::send(state_, WebSocketOpcode::text, bytes);
}

Awaitable<Status> WebSocketConnection::send_binary(std::string_view bytes) {
    return State::send(state_, WebSocketOpcode::binary, bytes);
}

Awaitable<Status> WebSocketConnection::ping() {
    return State::send(state_, WebSocketOpcode::ping, {});
}

Awaitable<Status> WebSocketConnection::close(std::uint16_t code, std::string reason) {
    return State::send_close(state_, code, std::move(reason));
}

void WebSocketConnection::abort() {
    state_->abort();
}

steady_clock::time_point WebSocketConnection::last_heard() const {
    return state_->heard;
}

Awaitable<Result<std::unique_ptr<WebSocketConnection>>> accept_websocket(Exchange& exchange,
                                                                         std::size_t max_message) {
    Status started = co_await start_websocket(exchange);
    if (!started) co_return started.error();
    co_return std::make_unique<WebSocketConnection>(exchange.upgrade(),
                                                    WebSocketConnection::Side::server, max_message);
}

namespace {

std::string new_websocket_key() {
    std::string raw(16, '\0');
    random_bytes(raw.data(), raw.size());
    return to_base64(raw);
}

/// Why an answer is no agreement to the WebSocket; null when it is one.
const char* disagreement(const ResponseHead& head, std::string_view key) {
    const Fields& fields = head.fields;
    if (!fields.has_token("Upgrade", "websocket") || !fields.has_token("Connection", "upgrade")) {
        return "the server upgraded to something else than a WebSocket";
    }
    if (fields.get("Sec-WebSocket-Accept") != std::string_view(websocket_accept(key))) {
        return "the server's Sec-WebSocket-Accept is wrong";
    }
    if (fields.has("Sec-WebSocket-Extensions")) {
        return "the server chose an extension that was not offered";
    }
    return nullptr;
}

}  // namespace

Awaitable<Result<std::unique_ptr<WebSocketConnection>>> connect_websocket(Client& client,
                                                                          Origin origin,
                                                                          std::string target,
                                                                          Fields fields) {
    std::string key = new_websocket_key();
    ClientRequest request("GET", std::move(target), std::move(fields));
    request.head.fields.set("Connection", "Upgrade");
    request.head.fields.set("Upgrade", "websocket");
    request.head.fields.set("Sec-WebSocket-Version", "13");
    request.head.fields.set("Sec-WebSocket-Key", key);
    auto response = co_await client.send(origin, std::move(request));
    if (!response) co_return response.error();
    const ResponseHead& head = (*response)->head();
    if (head.status != 101) {
        co_return Error(
            ErrorCode::bad_gateway,
            "the server answered " + std::to_string(head.status) + " to the WebSocket request");
    }
    if (const char* reason = disagreement(head, key)) {
        co_return Error(ErrorCode::bad_gateway, reason);
    }
    co_return std::make_unique<WebSocketConnection>((*response)->upgrade(),
                                                    WebSocketConnection::Side::client);
}

}  // namespace opensandbox::http
