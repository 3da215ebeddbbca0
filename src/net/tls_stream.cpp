#include "net/tls_stream.hpp"

#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/socket.h>

#include <cerrno>

namespace opensandbox::net {

/// Shared with the operations in flight, which may outlive the stream by one turn of the loop.
struct TlsStreamCore {
    void close() {
        if (closed) return;
        closed = true;
        session.say_goodbye();
        boost::system::error_code ignored;
        socket.close(ignored);
    }

    StreamSocket socket;
    TlsSession session;
    bool closed = false;
};

namespace {

/// What one TLS record holds: small pieces are joined up to this size.
constexpr std::size_t kRecord = 16 * 1024;

Error tls_closed_error() {
    return {ErrorCode::cancelled, "the connection was closed"};
}

/// Waits for what the session needs next; false when the wait was broken off.
Awaitable<bool> wait_for(std::shared_ptr<TlsStreamCore> core, TlsSession::Want want) {
    auto what =
        want == TlsSession::Want::write ? StreamSocket::wait_write : StreamSocket::wait_read;
    auto [failure] = co_await core->socket.async_wait(what, kAsTupleAwaitable);
    co_return failure != asio::error::operation_aborted;
}

class TlsStream final : public Stream {
  public:
    explicit TlsStream(std::shared_ptr<TlsStreamCore> core) : core_(std::move(core)) {}
    ~TlsStream() override { core_->close(); }

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        auto core = core_;
        while (!core->closed) {
            TlsSession::Outcome outcome = core->session.read(into);
            if (outcome.want == TlsSession::Want::nothing) co_return outcome.bytes;
            if (outcome.want == TlsSession::Want::failed) {
                co_return Error(ErrorCode::io, "read from the connection: " + outcome.reason);
            }
            bool ready = co_await wait_for(core, outcome.want);
            if (!ready) co_return tls_closed_error();
        }
        co_return tls_closed_error();
    }

    Awaitable<Status> write_all(std::span<const std::string_view> pieces) override {
        auto core = core_;
        if (pieces.size() == 1) co_return co_await write_bytes(core, pieces.front());
        std::string joined;
        for (std::string_view piece : pieces) {
            bool fits = joined.size() + piece.size() <= kRecord;
            if (fits) {
                joined += piece;
                continue;
            }
            auto before = co_await write_bytes(core, joined);
            if (!before) co_return before.error();
            joined.clear();
            auto written = co_await write_bytes(core, piece);
            if (!written) co_return written.error();
        }
        auto rest = co_await write_bytes(core, joined);
        if (!rest) co_return rest.error();
        co_return Status();
    }

    Awaitable<void> wait_readable() override {
        auto core = core_;
        if (core->closed || core->session.has_pending()) co_return;
        co_await core->socket.async_wait(StreamSocket::wait_read, kAsTupleAwaitable);
    }

    void cancel_read() override {
        boost::system::error_code ignored;
        core_->socket.cancel(ignored);
    }

    bool quiet() override {
        if (core_->closed || core_->session.has_pending()) return false;
        char byte = 0;
        ssize_t count = ::recv(core_->socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return count < 0 && (errno == EAGAIN || errno == EINTR);
    }

    void shutdown_send() override {
        if (!core_->closed) core_->session.say_goodbye();
    }
    void close() override { core_->close(); }
    std::string peer_address() const override {
        return core_->closed ? std::string() : peer_address_of(core_->socket.native_handle());
    }
    asio::any_io_executor executor() override { return core_->socket.get_executor(); }

  private:
    static Awaitable<Status> write_bytes(std::shared_ptr<TlsStreamCore> core,
                                         std::string_view bytes) {
        while (!bytes.empty() || core->session.has_unsent()) {
            if (core->closed) co_return tls_closed_error();
            TlsSession::Outcome outcome = core->session.write(bytes);
            if (outcome.want == TlsSession::Want::nothing) {
                bytes.remove_prefix(outcome.bytes);
                continue;
            }
            if (outcome.want == TlsSession::Want::failed) {
                co_return Error(ErrorCode::io, "write to the connection: " + outcome.reason);
            }
            co_await wait_for(core, outcome.want);
            // cancel_read() interrupts this wait too; only the caller's own cancellation ends it.
            auto cancellation = co_await asio::this_coro::cancellation_state;
            if (cancellation.cancelled() != asio::cancellation_type::none)
                co_return tls_closed_error();
        }
        co_return Status();
    }

    std::shared_ptr<TlsStreamCore> core_;
};

}  // namespace

TlsHandshake::TlsHandshake(StreamSocket socket, TlsSession session)
    : core_(std::make_shared<TlsStreamCore>(std::move(socket), std::move(session))) {}
TlsHandshake::~TlsHandshake() = default;

void TlsHandshake::close() {
    if (core_) core_->close();
}

Awaitable<Status> TlsHandshake::run(std::string name) {
    auto core = core_;
    while (!core->closed) {
        TlsSession::Outcome outcome = core->session.handshake();
        if (outcome.want == TlsSession::Want::nothing) co_return Status();
        if (outcome.want == TlsSession::Want::failed) {
            co_return Error(ErrorCode::unavailable, "TLS with " + name + ": " + outcome.reason);
        }
        bool ready = co_await wait_for(core, outcome.want);
        if (!ready) break;
    }
    co_return tls_closed_error();
}

std::unique_ptr<Stream> TlsHandshake::finish() {
    return std::make_unique<TlsStream>(std::move(core_));
}

}  // namespace opensandbox::net
