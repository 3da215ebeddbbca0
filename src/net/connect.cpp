#include "net/socket_stream.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace opensandbox::net {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using GenericEndpoint = asio::generic::stream_protocol::endpoint;

constexpr milliseconds kNoLimit = std::chrono::hours(24);
/// How long a Unix socket may have no room for one more connection.
constexpr milliseconds kUnixPatience{10'000};

/// What a name lookup leaves behind. Shared with the lookup, which cannot be interrupted: the
/// resolver's thread finishes after the caller gave up.
struct Lookup {
    explicit Lookup(const asio::any_io_executor& executor) : resolver(executor), done(executor) {}
    tcp::resolver resolver;
    Event done;
    std::vector<tcp::endpoint> endpoints;
    boost::system::error_code failure;
};

Awaitable<void> look_up(std::shared_ptr<Lookup> lookup, std::string host, std::uint16_t port) {
    auto [failure, results] = co_await lookup->resolver.async_resolve(
        host, std::to_string(port), tcp::resolver::numeric_service, kAsTupleAwaitable);
    lookup->failure = failure;
    for (const auto& result : results)
        lookup->endpoints.push_back(result.endpoint());
    lookup->done.notify();
}

Awaitable<Result<std::vector<tcp::endpoint>>> resolve(std::string host, std::uint16_t port,
                                                      milliseconds timeout) {
    boost::system::error_code not_numeric;
    auto address = asio::ip::make_address(host, not_numeric);
    if (!not_numeric) {
        std::vector<tcp::endpoint> one;
        one.emplace_back(address, port);
        co_return one;
    }
    auto executor = co_await asio::this_coro::executor;
    auto lookup = std::make_shared<Lookup>(executor);
    spawn(executor, look_up(lookup, host, port), "resolve");
    bool answered = co_await lookup->done.wait_for(timeout);
    if (!answered) {
        lookup->resolver.cancel();
        co_return Error(ErrorCode::timeout, "look up " + host + ": timed out");
    }
    if (lookup->failure || lookup->endpoints.empty()) {
        std::string reason = lookup->failure ? lookup->failure.message() : "no address";
        co_return Error(ErrorCode::unavailable, "look up " + host + ": " + reason);
    }
    co_return std::move(lookup->endpoints);
}

Awaitable<Result<StreamSocket>> connect_endpoint(GenericEndpoint endpoint, std::string name,
                                                 milliseconds timeout) {
    auto executor = co_await asio::this_coro::executor;
    // Shared with the deadline, which may fire when this frame is already gone.
    auto socket = std::make_shared<StreamSocket>(executor);
    boost::system::error_code failure;
    socket->open(endpoint.protocol(), failure);
    if (failure) co_return Error::from_errno(failure.value(), "connect to " + name);
    Deadline deadline(executor, timeout, [socket] {
        boost::system::error_code ignored;
        socket->close(ignored);
    });
    auto [refused] = co_await socket->async_connect(endpoint, kAsTupleAwaitable);
    if (deadline.expired()) {
        co_return Error(ErrorCode::timeout, "connect to " + name + ": timed out");
    }
    deadline.disarm();
    if (refused) {
        co_return Error(ErrorCode::unavailable, "connect to " + name + ": " + refused.message());
    }
    set_tcp_options(socket->native_handle());
    co_return std::move(*socket);
}

}  // namespace

Awaitable<Result<StreamSocket>> connect_socket(std::string host, std::uint16_t port,
                                               milliseconds timeout) {
    std::string shown = host + ":" + std::to_string(port);
    auto end = steady_clock::now() + (timeout.count() > 0 ? timeout : kNoLimit);
    auto left = [end] {
        auto rest = std::chrono::ceil<milliseconds>(end - steady_clock::now());
        return std::max(rest, milliseconds(1));
    };
    auto endpoints = co_await resolve(std::move(host), port, left());
    if (!endpoints) co_return endpoints.error();
    Error last(ErrorCode::unavailable, "connect to " + shown + ": no address");
    std::size_t untried = endpoints->size();
    for (const auto& endpoint : *endpoints) {
        // A dead first address must not eat the time of the others.
        auto share = left() / static_cast<int>(untried--);
        auto socket = co_await connect_endpoint(GenericEndpoint(endpoint), shown, share);
        if (socket) co_return std::move(*socket);
        last = socket.error();
    }
    co_return last;
}

Awaitable<Result<std::unique_ptr<Stream>>> connect_tcp(std::string host, std::uint16_t port,
                                                       milliseconds timeout) {
    auto socket = co_await connect_socket(std::move(host), port, timeout);
    if (!socket) co_return socket.error();
    co_return make_stream(std::move(*socket));
}

Awaitable<Result<std::unique_ptr<Stream>>> connect_unix(std::string name) {
    if (name.size() >= sizeof(sockaddr_un::sun_path)) {
        co_return Error(ErrorCode::unavailable, "connect to " + name + ": path too long");
    }
    auto executor = co_await asio::this_coro::executor;
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) co_return Error::from_errno(errno, "connect to " + name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof(address.sun_path) - 1);
    auto end = steady_clock::now() + kUnixPatience;
    while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        int failed = errno;
        if (failed == EINTR) continue;
        // The queue of the listener is full, and nothing tells when it is no longer.
        if (failed != EAGAIN) {
            co_return Error(ErrorCode::unavailable,
                            "connect to " + name + ": " + std::string(::strerror(failed)));
        }
        if (steady_clock::now() >= end) {
            co_return Error(ErrorCode::timeout, "connect to " + name + ": timed out");
        }
        co_await sleep_for(milliseconds(5));
        auto cancellation = co_await asio::this_coro::cancellation_state;
        if (cancellation.cancelled() != asio::cancellation_type::none) {
            co_return Error(ErrorCode::cancelled, "connect to " + name + ": cancelled");
        }
    }
    co_return make_stream(executor, std::move(fd), AF_UNIX);
}

}  // namespace opensandbox::net
