#include "net/tls.hpp"

#include "net/socket_stream.hpp"
#include "net/task.hpp"
#include "net/tls_context.hpp"
#include "net/tls_session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace opensandbox::net {
namespace {

constexpr auto as_tuple_awaitable = asio::as_tuple(asio::use_awaitable);
/// What one TLS record holds: small pieces are joined up to this size.
constexpr std::size_t kRecord = 16 * 1024;

Error closed_error() {
    return {ErrorCode::cancelled, "the connection was closed"};
}

/// Shared with the operations in flight, which may outlive the stream by one turn of the loop.
struct Core {
    Core(StreamSocket s, TlsSession t) : socket(std::move(s)), session(std::move(t)) {}

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

/// Waits for what the session needs next; false when the wait was broken off.
Awaitable<bool> wait_for(std::shared_ptr<Core> core, TlsSession::Want want) {
    auto what =
        want == TlsSession::Want::write ? StreamSocket::wait_write : StreamSocket::wait_read;
    auto [failure] = co_await core->socket.async_wait(what, as_tuple_awaitable);
    co_return failure != asio::error::operation_aborted;
}

class TlsStream final : public Stream {
  public:
    explicit TlsStream(std::shared_ptr<Core> core) : core_(std::move(core)) {}
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
            if (!ready) co_return closed_error();
        }
        co_return closed_error();
    }

    Awaitable<Status> write_all(std::span<const std::string_view> pieces) override {
        auto core = core_;
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
        co_await core->socket.async_wait(StreamSocket::wait_read, as_tuple_awaitable);
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
    static Awaitable<Status> write_bytes(std::shared_ptr<Core> core, std::string_view bytes) {
        while (!bytes.empty()) {
            if (core->closed) co_return closed_error();
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
            if (cancellation.cancelled() != asio::cancellation_type::none) co_return closed_error();
        }
        co_return Status();
    }

    std::shared_ptr<Core> core_;
};

Awaitable<Status> shake_hands(std::shared_ptr<Core> core, std::string name) {
    while (!core->closed) {
        TlsSession::Outcome outcome = core->session.handshake();
        if (outcome.want == TlsSession::Want::nothing) co_return Status();
        if (outcome.want == TlsSession::Want::failed) {
            co_return Error(ErrorCode::unavailable, "TLS with " + name + ": " + outcome.reason);
        }
        bool ready = co_await wait_for(core, outcome.want);
        if (!ready) break;
    }
    co_return closed_error();
}

}  // namespace

struct TlsClient::Context {
    explicit Context(TlsContextHandle h) : handle(std::move(h)) {}
    TlsContextHandle handle;
};

TlsClient::TlsClient(TlsSettings settings) : settings_(std::move(settings)) {}
TlsClient::~TlsClient() = default;

Status TlsClient::prepare() {
    if (context_) return Status();
    auto made = make_tls_context(settings_);
    if (!made) return made.error();
    context_ = std::make_unique<Context>(std::move(*made));
    return Status();
}

Awaitable<Result<std::unique_ptr<Stream>>> TlsClient::connect(std::string_view host,
                                                              std::uint16_t port,
                                                              std::chrono::milliseconds timeout) {
    using std::chrono::steady_clock;
    auto began = steady_clock::now();
    std::string name(host);
    auto ready = prepare();
    if (!ready) co_return ready.error();
    auto session = TlsSession::open(context_->handle.get(), name, settings_.verify);
    if (!session) co_return session.error();
    auto socket = co_await connect_socket(name, port, timeout);
    if (!socket) co_return socket.error();
    session->attach(socket->native_handle());
    auto executor = co_await asio::this_coro::executor;
    auto core = std::make_shared<Core>(std::move(*socket), std::move(*session));
    std::string shown = name + ":" + std::to_string(port);
    std::optional<Deadline> deadline;
    if (timeout.count() > 0) {
        auto left =
            timeout - std::chrono::floor<std::chrono::milliseconds>(steady_clock::now() - began);
        left = std::max(left, std::chrono::milliseconds(1));
        deadline.emplace(executor, left, [core] { core->close(); });
    }
    auto agreed = co_await shake_hands(core, shown);
    if (deadline && deadline->expired()) {
        co_return Error(ErrorCode::timeout, "TLS with " + shown + ": timed out");
    }
    if (!agreed) co_return agreed.error();
    co_return std::make_unique<TlsStream>(std::move(core));
}

}  // namespace opensandbox::net
