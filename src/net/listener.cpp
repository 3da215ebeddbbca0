#include "net/socket_stream.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <arpa/inet.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <fcntl.h>

namespace opensandbox::net {
namespace {

/// How long accept() pauses when descriptors or memory have run out.
constexpr std::chrono::milliseconds kExhaustionPause{100};

std::uint16_t bound_port(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    if (address.ss_family == AF_INET) {
        return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
    }
    if (address.ss_family == AF_INET6) {
        return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
    }
    return 0;
}

bool is_exhaustion(int number) {
    return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

/// Failures of the connection that was to be accepted, not of the listener (accept(2)).
bool is_connection_failure(int number) {
    switch (number) {
        case EINTR:
        case ECONNABORTED:
        case EPROTO:
        case EPERM:
        case ENETDOWN:
        case ENOPROTOOPT:
        case EHOSTDOWN:
        case ENONET:
        case EHOSTUNREACH:
        case EOPNOTSUPP:
        case ENETUNREACH: return true;
        default: return false;
    }
}

class SocketListener final : public Listener {
  public:
    SocketListener(asio::any_io_executor executor, UniqueFd fd, int family)
        : core_(std::make_shared<Core>(std::move(executor), std::move(fd), family)) {}
    ~SocketListener() override { close(); }

    Awaitable<Result<std::unique_ptr<Stream>>> accept() override {
        auto core = core_;
        while (!core->closed) {
            UniqueFd fd(::accept4(core->descriptor.native_handle(), nullptr, nullptr,
                                  SOCK_NONBLOCK | SOCK_CLOEXEC));
            int failed = errno;
            if (fd) {
                auto stream =
                    make_stream(core->descriptor.get_executor(), std::move(fd), core->family);
                if (stream) co_return std::move(*stream);
                failed = ENOMEM;
            }
            if (is_exhaustion(failed)) {
                co_await sleep_for(kExhaustionPause);
            } else if (failed == EAGAIN) {
                auto [refused] = co_await core->descriptor.async_wait(
                    asio::posix::stream_descriptor::wait_read, kAsTupleAwaitable);
                // Without readiness there is nothing to wait for: pause rather than spin.
                if (refused && !core->closed) co_await sleep_for(kExhaustionPause);
                auto cancellation = co_await asio::this_coro::cancellation_state;
                if (cancellation.cancelled() != asio::cancellation_type::none) break;
            } else if (!is_connection_failure(failed)) {
                co_return Error::from_errno(failed, "accept a connection");
            }
        }
        co_return Error(ErrorCode::cancelled, "the listener was closed");
    }

    void close() override {
        if (core_->closed) return;
        core_->closed = true;
        boost::system::error_code ignored;
        core_->descriptor.close(ignored);
    }

    std::uint16_t port() const override { return core_->port; }

  private:
    /// Shared with an accept() in flight, which may outlive the listener by one turn of the loop.
    struct Core {
        Core(asio::any_io_executor executor, UniqueFd fd, int f)
            : descriptor(executor, fd.release()),
              family(f),
              port(bound_port(descriptor.native_handle())) {}
        asio::posix::stream_descriptor descriptor;
        int family;
        std::uint16_t port;
        bool closed = false;
    };

    std::shared_ptr<Core> core_;
};

}  // namespace

Result<std::unique_ptr<Listener>> adopt_listener(asio::any_io_executor executor, UniqueFd fd) {
    auto family = stream_socket_family(fd.get());
    if (!family) return family.error();
    int flags = ::fcntl(fd.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
        return Error::from_errno(errno, "take over a listening socket");
    }
    if (*family != AF_UNIX) set_tcp_options(fd.get());
    return std::make_unique<SocketListener>(std::move(executor), std::move(fd), *family);
}

Result<std::unique_ptr<Listener>> listen_tcp(asio::any_io_executor executor, std::string_view host,
                                             std::uint16_t port) {
    std::string name(host);
    boost::system::error_code malformed;
    auto address = asio::ip::make_address(name, malformed);
    if (malformed) {
        return Error(ErrorCode::invalid_argument, "listen on " + name + ": not a numeric address");
    }
    asio::ip::tcp::endpoint endpoint(address, port);
    std::string what = "listen on " + name + " port " + std::to_string(port);
    UniqueFd fd(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         IPPROTO_TCP));
    if (!fd) return Error::from_errno(errno, what);
    int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    // The unspecified IPv6 address stands for every address of the machine.
    int only_v6 = address.is_v6() && address.is_unspecified() ? 0 : 1;
    if (address.is_v6()) {
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
    }
    if (::bind(fd.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
        ::listen(fd.get(), SOMAXCONN) != 0) {
        return Error::from_errno(errno, what);
    }
    return adopt_listener(std::move(executor), std::move(fd));
}

}  // namespace opensandbox::net
