#include "agent/pty/client.hpp"

#include "http/websocket_frames.hpp"
#include "net/task.hpp"

#include <algorithm>

namespace opensandbox::agent {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMaxPiece = std::size_t{32} * 1024;
constexpr seconds kPingEvery{30};
constexpr seconds kReadLimit{60};
constexpr seconds kWriteLimit{10};
/// How long the client's own close frame is waited for.
constexpr seconds kCloseLimit{2};
constexpr std::chrono::milliseconds kTakenOverLimit{200};
/// A process that cannot be written to has usually ended: so long its end may take to be noticed.
constexpr std::chrono::milliseconds kEndLimit{200};
constexpr std::uint16_t kCloseTakenOver = 4001;
constexpr std::uint16_t kCloseFailed = 1011;

}  // namespace

PtyClient::PtyClient(const asio::any_io_executor& executor, std::shared_ptr<PtySession> session,
                     PtyClientOptions options)
    : executor_(executor),
      session_(std::move(session)),
      options_(options),
      wake_(executor),
      input_room_(executor),
      tick_(executor),
      reader_done_(executor) {}

Awaitable<void> PtyClient::run(std::shared_ptr<PtyClient> client,
                               std::unique_ptr<http::WebSocketConnection> socket) {
    PtyClient& self = *client;
    self.socket_ = std::move(socket);
    bool waits = self.options_.takeover && !self.options_.viewer;
    bool taken = !waits || co_await self.session_->take_over(client);
    if (!taken) {
        bool gone = self.session_->removed();
        co_await self.fail(gone ? pty::kSessionGone : pty::kAlreadyConnected,
                           gone ? "the session was deleted"
                                : "another client holds the session and does not let go of it");
    } else {
        co_await self.serve();
    }
    self.stop();
    if (self.replaced_) self.session_->leave(self);
    bool ended = co_await self.reader_ended();
    if (!ended) self.socket_->abort();
    self.session_->leave(self);
}

Awaitable<void> PtyClient::serve() {
    bool entered = options_.viewer || co_await enter();
    if (entered) co_await converse();
}

/// The shell runs for the client that holds the session, or it is told why not.
Awaitable<bool> PtyClient::enter() {
    if (replaced_) {
        co_await say_taken_over(shared_from_this());
        co_return false;
    }
    if (session_->removed()) {
        co_await fail(pty::kSessionGone, "the session was deleted");
        co_return false;
    }
    Status started = session_->start(options_.mode);
    if (!started) {
        // Whoever is told comes again at once, and is not to find this one still here.
        session_->leave(*this);
        co_await fail(pty::kStartFailed, started.error().message());
        co_return false;
    }
    co_return true;
}

Awaitable<void> PtyClient::converse() {
    bool terminal = session_->mode() == PtyProcess::Mode::terminal;
    bool sent = co_await replay();
    if (sent) {
        sent = co_await send_text(pty::connected_text(session_->id(), terminal, options_.viewer));
    }
    if (!sent) co_return;
    reading_ = true;
    net::spawn(executor_, read_input(shared_from_this()), "pty input");
    net::spawn(executor_, keep_alive(shared_from_this()), "pty keep-alive");
    co_await pass_output();
}

/// What is there now is replayed, all that comes from now on is live: nothing is lost or doubled.
Awaitable<bool> PtyClient::replay() {
    const Replay& output = session_->output();
    std::uint64_t end = output_end();
    std::uint64_t from = std::max(options_.since, output.oldest());
    attached_ = true;
    position_ = end;
    if (from >= end) co_return true;
    std::string frame = pty::replay_head(from);
    if (options_.streams && session_->mode() == PtyProcess::Mode::pipes) {
        // Not taken yet: the shell waits, so that nothing falls out of the buffer meanwhile.
        position_ = from;
        bool sent = co_await send_binary(std::move(frame));
        if (sent) sent = co_await replay_streams(end);
        co_return sent;
    }
    frame.reserve(frame.size() + static_cast<std::size_t>(end - from));
    while (from < end) {
        auto piece = output.read(from);
        if (!piece) break;
        std::uint64_t start = piece->next - piece->bytes.size();
        frame.append(piece->bytes, 0, static_cast<std::size_t>(end - start));
        from = piece->next;
    }
    co_return co_await send_binary(std::move(frame));
}

Awaitable<bool> PtyClient::replay_streams(std::uint64_t end) {
    while (position_ < end && !missed_output()) {
        auto piece = session_->output().read(position_);
        if (!piece) break;
        std::uint64_t start = piece->next - piece->bytes.size();
        std::uint64_t size = std::min<std::uint64_t>(piece->bytes.size(), end - start);
        bool sent = co_await send_piece(std::move(*piece), static_cast<std::size_t>(size));
        if (!sent) co_return false;
    }
    co_return true;
}

Awaitable<void> PtyClient::pass_output() {
    while (!over_) {
        if (missed_output()) {
            options_.since = position_;
            bool sent = co_await replay();
            if (!sent) co_return;
            continue;
        }
        const std::uint64_t end = output_end();
        if (auto piece = session_->output().read(position_); piece && position_ < end) {
            std::uint64_t start = piece->next - piece->bytes.size();
            std::uint64_t size = std::min<std::uint64_t>(piece->bytes.size(), end - start);
            bool sent = co_await send_piece(std::move(*piece), static_cast<std::size_t>(size));
            if (!sent) co_return;
        } else if (auto code = options_.viewer ? exit_ : session_->exit_code()) {
            co_await tell_exit(*code);
            co_return;
        } else {
            co_await wake_.wait();
        }
    }
}

/// Where the output ends that there is, or will ever be, for this client.
std::uint64_t PtyClient::output_end() const {
    std::uint64_t total = session_->output().total();
    return exit_ ? std::min(total, exit_offset_) : total;
}

/// Nothing waits for a viewer: what it was too slow for may have left the buffer.
bool PtyClient::missed_output() const {
    return options_.viewer && position_ < std::min(session_->output().oldest(), output_end());
}

/// The first `size` bytes of a piece, or as much of them as fits into a frame.
Awaitable<bool> PtyClient::send_piece(Replay::Piece piece, std::size_t size) {
    size = std::min(size, kMaxPiece);
    bool error = piece.kind == EventWriter::Stream::standard_error;
    std::string frame(1, error ? pty::kErrorOutput : pty::kOutput);
    frame.append(piece.bytes, 0, size);
    position_ = piece.next - piece.bytes.size() + size;
    bool sent = co_await send_binary(std::move(frame));
    if (!options_.viewer) session_->output_taken();
    co_return sent;
}

Awaitable<void> PtyClient::tell_exit(int code) {
    bool sent = co_await send_text(pty::exit_text(code));
    if (!sent) co_return;
    Status closed = co_await socket_->close(http::kCloseNormal, "process exited");
    if (!closed) co_return;
    // Only a client that was there to the end has learned of it.
    bool ended = co_await reader_ended();
    if (!ended) socket_->abort();
    if (ended && !options_.viewer && (parted_ || !replaced_)) session_->exit_told();
}

/// Waits until the client's side of the connection ended, at most kCloseLimit.
Awaitable<bool> PtyClient::reader_ended() {
    if (reading_) co_await reader_done_.wait_for(kCloseLimit);
    co_return !reading_;
}

Awaitable<bool> PtyClient::send_text(std::string text) {
    net::Deadline limit(executor_, kWriteLimit, [this] { socket_->abort(); });
    Status sent = co_await socket_->send_text(text);
    co_return sent.has_value();
}

Awaitable<bool> PtyClient::send_binary(std::string bytes) {
    net::Deadline limit(executor_, kWriteLimit, [this] { socket_->abort(); });
    Status sent = co_await socket_->send_binary(bytes);
    co_return sent.has_value();
}

Awaitable<void> PtyClient::fail(std::string code, std::string message) {
    bool sent = co_await send_text(pty::error_text(code, message));
    if (!sent) co_return;
    net::Deadline limit(executor_, kWriteLimit, [this] { socket_->abort(); });
    co_await socket_->close(kCloseFailed, std::move(code));
    if (reading_) co_return;
    // Reading what the client still says spares it a reset before it has read ours.
    reading_ = true;
    net::spawn(executor_, read_input(shared_from_this()), "pty end");
}

void PtyClient::stop() {
    over_ = true;
    wake_.notify();
    input_room_.notify();
    tick_.notify();
}

void PtyClient::output_came() {
    wake_.notify();
    input_room_.notify();
}

void PtyClient::shell_ended(int code) {
    if (exit_) return;
    exit_ = code;
    exit_offset_ = session_->output().total();
}

void PtyClient::end_for_another() {
    if (replaced_) return;
    replaced_ = true;
    if (socket_) net::spawn(executor_, say_taken_over(shared_from_this()), "pty takeover");
}

Awaitable<void> PtyClient::say_taken_over(std::shared_ptr<PtyClient> client) {
    PtyClient& self = *client;
    net::Deadline limit(self.executor_, kTakenOverLimit, [&self] { self.socket_->abort(); });
    co_await self.socket_->close(kCloseTakenOver, pty::kTakenOver);
    self.stop();
}

Awaitable<void> PtyClient::read_input(std::shared_ptr<PtyClient> client) {
    using Kind = http::WebSocketMessage::Kind;
    PtyClient& self = *client;
    while (true) {
        auto message = co_await self.socket_->receive();
        self.parted_ = message && message->kind == Kind::close;
        if (!message || self.parted_) break;
        if (self.over_) continue;
        bool binary = message->kind == Kind::binary;
        pty::Request request =
            binary ? pty::parse_binary(std::move(message->data)) : pty::parse_text(message->data);
        co_await self.handle(std::move(request));
    }
    self.reading_ = false;
    self.reader_done_.notify();
    self.stop();
}

Awaitable<void> PtyClient::refuse_writing() {
    constexpr const char* kWhy = "a viewer only reads";
    if (++refusals_ < kMaxRefusals) {
        co_await send_text(pty::error_text(pty::kReadOnly, kWhy));
        co_return;
    }
    co_await fail(pty::kReadOnly, kWhy);
    stop();
}

Awaitable<void> PtyClient::handle(pty::Request request) {
    if (options_.viewer && request.writes()) {
        co_await refuse_writing();
        co_return;
    }
    auto process = session_->process();
    switch (request.kind) {
        case pty::Request::Kind::nothing: break;
        case pty::Request::Kind::input: co_await write_input(std::move(request.data)); break;
        case pty::Request::Kind::resize:
            if (process) process->resize(TerminalSize(request.columns, request.rows));
            break;
        case pty::Request::Kind::signal:
            if (process) process->signal(request.signal);
            break;
        case pty::Request::Kind::ping: co_await send_text(pty::pong_text()); break;
        case pty::Request::Kind::unknown:
            co_await send_text(
                pty::error_text(pty::kInvalidFrame, "unknown frame type: " + request.data));
            break;
    }
}

Awaitable<void> PtyClient::write_input(std::string bytes) {
    auto process = session_->process();
    if (!process || process->ended()) co_return;
    process->input().on_change([weak = weak_from_this()] {
        if (auto self = weak.lock()) self->input_room_.notify();
    });
    process->input().push(bytes);
    input_full_ = true;
    while (!over_ && !process->ended() && process->input().full())
        co_await input_room_.wait();
    input_full_ = false;
    read_since_ = steady_clock::now();
    if (!process->input().failed()) co_return;
    co_await net::sleep_for(kEndLimit);
    if (over_ || process->ended()) co_return;
    co_await fail(pty::kStdinWriteFailed, "the shell's standard input is closed");
    stop();
}

Awaitable<void> PtyClient::keep_alive(std::shared_ptr<PtyClient> client) {
    PtyClient& self = *client;
    auto next_ping = steady_clock::now() + kPingEvery;
    while (!self.over_) {
        auto time = steady_clock::now();
        auto silent_since = std::max(self.socket_->last_heard(), self.read_since_);
        if (self.input_full_) silent_since = time;
        if (time >= silent_since + kReadLimit) {
            self.socket_->abort();
            break;
        }
        if (time >= next_ping) {
            next_ping = time + kPingEvery;
            net::Deadline limit(self.executor_, kWriteLimit, [&self] { self.socket_->abort(); });
            co_await self.socket_->ping();
            continue;
        }
        co_await self.tick_.wait_for(std::min(next_ping, silent_since + kReadLimit) - time);
    }
}

}  // namespace opensandbox::agent
