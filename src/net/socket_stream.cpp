#include "net/socket_stream.hpp"

#include "net/stream.hpp"

#include <arpa/inet.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

namespace opensandbox::net {
namespace {

Error closed_error() {
    return {ErrorCode::cancelled, "the connection was closed"};
}

/// Where a gathered write stands.
struct WritePosition {
    std::size_t piece = 0;
    std::size_t offset = 0;

    void advance(std::span<const std::string_view> pieces, std::size_t bytes) {
        while (piece < pieces.size() && bytes >= pieces[piece].size() - offset) {
            bytes -= pieces[piece].size() - offset;
            offset = 0;
            ++piece;
        }
        offset += bytes;
    }
};

/// One sendmsg of what is left; the errno, or 0.
int send_some(int fd, std::span<const std::string_view> pieces, WritePosition& at) {
    std::array<iovec, 32> vectors;
    std::size_t count = 0;
    std::size_t offset = at.offset;
    for (std::size_t i = at.piece; i < pieces.size() && count < vectors.size(); ++i) {
        std::string_view rest = pieces[i].substr(offset);
        offset = 0;
        if (rest.empty()) continue;
        vectors[count++] = {const_cast<char*>(rest.data()), rest.size()};
    }
    if (count == 0) {
        at.piece = pieces.size();
        return 0;
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno;
    at.advance(pieces, static_cast<std::size_t>(sent));
    return 0;
}

/// Tries the system call first and waits only when it would block, or when the last read took all
/// there was: nearly all writes succeed at once, and so do reads in the middle of a large body.
class SocketStream final : public Stream {
  public:
    explicit SocketStream(StreamSocket socket) : core_(std::make_shared<Core>(std::move(socket))) {}
    ~SocketStream() override { close(); }

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        auto core = core_;
        while (!core->closed && !core->drained) {
            ssize_t count = ::recv(core->fd, into.data(), into.size(), MSG_DONTWAIT);
            if (count >= 0) {
                core->drained = static_cast<std::size_t>(count) < into.size();
                co_return static_cast<std::size_t>(count);
            }
            if (errno == EAGAIN) break;
            if (errno != EINTR) co_return Error::from_errno(errno, "read from the connection");
        }
        if (core->closed) co_return closed_error();
        // Not a wait for readiness and then a read: that would arm the socket anew each time.
        auto [failure, count] = co_await core->socket.async_receive(
            asio::buffer(into.data(), into.size()), kAsTupleAwaitable);
        if (failure == asio::error::operation_aborted) co_return closed_error();
        if (failure == asio::error::eof) co_return std::size_t(0);
        if (failure) co_return Error::from_errno(failure.value(), "read from the connection");
        core->drained = count < into.size();
        co_return count;
    }

    Awaitable<Status> write_all(std::span<const std::string_view> pieces) override {
        auto core = core_;
        WritePosition at;
        while (!core->closed) {
            if (at.piece == pieces.size()) co_return Status();
            int failed = send_some(core->fd, pieces, at);
            if (failed == 0 || failed == EINTR) continue;
            if (failed != EAGAIN) co_return Error::from_errno(failed, "write to the connection");
            co_await core->socket.async_wait(StreamSocket::wait_write, kAsTupleAwaitable);
            // cancel_read() interrupts this wait too; only the caller's own cancellation ends it.
            auto cancellation = co_await asio::this_coro::cancellation_state;
            if (cancellation.cancelled() != asio::cancellation_type::none) break;
        }
        co_return closed_error();
    }

    Awaitable<void> wait_readable() override {
        auto core = core_;
        if (core->closed) co_return;
        co_await core->socket.async_wait(StreamSocket::wait_read, kAsTupleAwaitable);
        core->drained = false;
    }

    void cancel_read() override {
        boost::system::error_code ignored;
        core_->socket.cancel(ignored);
    }

    bool quiet() override {
        if (core_->closed) return false;
        char byte = 0;
        ssize_t count = ::recv(core_->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return count < 0 && (errno == EAGAIN || errno == EINTR);
    }

    void acknowledge() override {
        int on = 1;
        if (!core_->closed) ::setsockopt(core_->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
    }

    Result<UniqueFd> share_output() override {
        if (core_->closed) return closed_error();
        boost::system::error_code failure;
        core_->socket.native_non_blocking(true, failure);
        if (failure) return Error::from_errno(failure.value(), "share the connection");
        UniqueFd copy(::fcntl(core_->fd, F_DUPFD_CLOEXEC, 0));
        if (!copy) return Error::from_errno(errno, "share the connection");
        return copy;
    }

    Awaitable<Status> wait_writable() override {
        auto core = core_;
        if (!core->closed) {
            co_await core->socket.async_wait(StreamSocket::wait_write, kAsTupleAwaitable);
        }
        auto cancellation = co_await asio::this_coro::cancellation_state;
        bool over = core->closed || cancellation.cancelled() != asio::cancellation_type::none;
        co_return over ? Status(closed_error()) : Status();
    }

    void shutdown_send() override {
        if (!core_->closed) ::shutdown(core_->fd, SHUT_WR);
    }

    void close() override {
        if (core_->closed) return;
        core_->closed = true;
        boost::system::error_code ignored;
        core_->socket.close(ignored);
    }

    std::string peer_address() const override {
        if (core_->closed) return {};
        return peer_address_of(core_->fd);
    }

    asio::any_io_executor executor() override { return core_->socket.get_executor(); }

  private:
    /// Shared with the operations in flight, which may outlive the stream by one turn of the loop.
    struct Core {
        explicit Core(StreamSocket s) : socket(std::move(s)), fd(socket.native_handle()) {}
        StreamSocket socket;
        int fd;
        bool closed = false;
        bool drained = false;  ///< the last read found less than it had room for
    };

    std::shared_ptr<Core> core_;
};

}  // namespace

std::unique_ptr<Stream> make_stream(StreamSocket socket) {
    return std::make_unique<SocketStream>(std::move(socket));
}

Result<std::unique_ptr<Stream>> make_stream(asio::any_io_executor executor, UniqueFd fd,
                                            int family) {
    StreamSocket socket(executor);
    boost::system::error_code failure;
    int protocol = family == AF_UNIX ? 0 : IPPROTO_TCP;
    socket.assign(asio::generic::stream_protocol(family, protocol), fd.get(), failure);
    if (failure) return Error::from_errno(failure.value(), "register the connection");
    (void)fd.release();
    return make_stream(std::move(socket));
}

std::string peer_address_of(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    char text[INET6_ADDRSTRLEN] = "";
    if (address.ss_family == AF_INET) {
        auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
        ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    } else if (address.ss_family == AF_INET6) {
        auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
            ::inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, text, sizeof(text));
        } else {
            ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
        }
    }
    return text;
}

void set_tcp_options(int fd) {
    int on = 1;
    int idle_seconds = 60;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
}

Result<int> stream_socket_family(int fd) {
    int type = 0;
    socklen_t size = sizeof(type);
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
        return Error::from_errno(errno, "take over a socket");
    }
    if (type != SOCK_STREAM) {
        return Error(ErrorCode::invalid_argument, "take over a socket: it is no stream socket");
    }
    int family = 0;
    size = sizeof(family);
    if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) {
        return Error::from_errno(errno, "take over a socket");
    }
    return family;
}

}  // namespace opensandbox::net
