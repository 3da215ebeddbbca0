#include "egress/intercept/core/dialer.hpp"

#include "egress/intercept/core/host_name.hpp"
#include "http/splice.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"
#include "net/tls_context.hpp"
#include "net/tls_stream.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace opensandbox::egress {
namespace {

using net::StreamSocket;
using GenericEndpoint = asio::generic::stream_protocol::endpoint;
constexpr int kRefusals = 2;

Awaitable<Result<std::vector<Endpoint>>> resolve(std::string host, std::uint16_t port) {
    std::vector<Endpoint> found;
    boost::system::error_code failure;
    auto address = asio::ip::make_address(host, failure);
    if (!failure) {
        found.emplace_back(address, port);
        co_return found;
    }
    auto executor = co_await asio::this_coro::executor;
    asio::ip::tcp::resolver resolver(executor);
    auto [refused, results] = co_await resolver.async_resolve(
        host, std::to_string(port), asio::ip::tcp::resolver::numeric_service, kAsTupleAwaitable);
    for (const auto& result : results)
        found.push_back(result.endpoint());
    if (refused || found.empty()) {
        co_return Error(ErrorCode::unavailable, "look up " + host + ": " + refused.message());
    }
    co_return found;
}

/// A stream that stands for another: what goes into the socket goes to the stream, by way of the
/// kernel. For TLS inside TLS, which needs a socket at its bottom.
Result<StreamSocket> socket_over(std::unique_ptr<net::Stream> stream) {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) {
        return Error::from_errno(errno, "connect to the upstream proxy");
    }
    UniqueFd near(pair[0]);
    UniqueFd far(pair[1]);
    auto executor = stream->executor();
    StreamSocket socket(executor);
    boost::system::error_code failure;
    socket.assign(asio::generic::stream_protocol(AF_UNIX, 0), near.get(), failure);
    if (failure) return Error::from_errno(failure.value(), "connect to the upstream proxy");
    (void)near.release();
    auto inner = net::make_stream(executor, std::move(far), AF_UNIX);
    if (!inner) return inner.error();
    http::Upgraded here(std::move(*inner), std::string());
    http::Upgraded there(std::move(stream), std::string());
    net::spawn(executor, http::splice(std::move(here), std::move(there)), "egress proxy");
    return socket;
}

}  // namespace

Dialer::Dialer(DialSettings settings) : settings_(std::move(settings)) {}
Dialer::~Dialer() = default;

Awaitable<Result<StreamSocket>> Dialer::connect_once(ClientId client, Endpoint target,
                                                     std::chrono::milliseconds timeout,
                                                     bool& was_refused) {
    std::string shown = host_and_port(target.address().to_string(), target.port());
    auto executor = co_await asio::this_coro::executor;
    auto socket = std::make_shared<StreamSocket>(executor);
    boost::system::error_code failure;
    GenericEndpoint generic(target);
    socket->open(generic.protocol(), failure);
    if (failure) co_return Error::from_errno(failure.value(), "connect to " + shown);
    if (settings_.prepare_socket) {
        auto prepared = settings_.prepare_socket(socket->native_handle(), client);
        if (!prepared) co_return prepared.error();
    }
    net::Deadline deadline(executor, timeout, [socket] {
        boost::system::error_code ignored;
        socket->close(ignored);
    });
    auto [refused] = co_await socket->async_connect(generic, kAsTupleAwaitable);
    if (deadline.expired()) {
        co_return Error(ErrorCode::timeout, "connect to " + shown + ": timed out");
    }
    deadline.disarm();
    was_refused = refused == asio::error::connection_refused;
    if (refused) {
        co_return Error(ErrorCode::unavailable, "connect to " + shown + ": " + refused.message());
    }
    net::set_tcp_options(socket->native_handle());
    co_return std::move(*socket);
}

Awaitable<Result<StreamSocket>> Dialer::connect(ClientId client, Endpoint target,
                                                std::chrono::milliseconds timeout) {
    // The packet filter refuses a port whose last connection it still has for a sandbox's.
    for (int left = kRefusals;; --left) {
        bool refused = false;
        auto connected = co_await connect_once(client, target, timeout, refused);
        if (connected || !refused || left == 0) co_return connected;
    }
}

/// TLS to the proxy, CONNECT within it, and the rest over a socket pair.
Awaitable<Result<StreamSocket>> Dialer::secure_proxy(std::shared_ptr<StreamSocket> socket,
                                                     std::string target) {
    const UpstreamProxy& proxy = *settings_.proxy;
    if (!proxy_context_) {
        auto made = net::make_tls_context(settings_.proxy_tls);
        if (!made) co_return made.error();
        proxy_context_ = std::move(*made);
    }
    auto session =
        net::TlsSession::open(proxy_context_.get(), proxy.host, settings_.proxy_tls.verify);
    if (!session) co_return session.error();
    session->attach(socket->native_handle());
    auto handshake = std::make_shared<net::TlsHandshake>(std::move(*socket), std::move(*session));
    auto executor = co_await asio::this_coro::executor;
    net::Deadline deadline(executor, settings_.timeout, [handshake] { handshake->close(); });
    auto agreed = co_await handshake->run("the upstream proxy " + proxy.host);
    deadline.disarm();
    if (!agreed) co_return agreed.error();
    auto stream = handshake->finish();
    net::Deadline answer(executor, settings_.timeout, [raw = stream.get()] { raw->close(); });
    auto connected = co_await connect_through(*stream, proxy, std::move(target));
    answer.disarm();
    if (!connected) co_return connected.error();
    co_return socket_over(std::move(stream));
}

Awaitable<Result<StreamSocket>> Dialer::dial_proxy(ClientId client, std::string target) {
    const UpstreamProxy& proxy = *settings_.proxy;
    auto endpoints = co_await resolve(proxy.host, proxy.port);
    if (!endpoints) co_return endpoints.error();
    Error last(ErrorCode::unavailable, "the upstream proxy has no address");
    auto share = settings_.timeout / static_cast<int>(endpoints->size());
    for (const Endpoint& endpoint : *endpoints) {
        auto connected = co_await connect(client, endpoint, share);
        if (!connected) {
            last = connected.error();
            continue;
        }
        auto socket = std::make_shared<StreamSocket>(std::move(*connected));
        if (proxy.tls) co_return co_await secure_proxy(socket, std::move(target));
        // The stream only borrows: the socket itself is what the caller gets.
        auto executor = co_await asio::this_coro::executor;
        UniqueFd copy(::dup(socket->native_handle()));
        if (!copy) co_return Error::from_errno(errno, "connect to the upstream proxy");
        auto stream = net::make_stream(executor, std::move(copy), endpoint.protocol().family());
        if (!stream) co_return stream.error();
        net::Deadline answer(executor, settings_.timeout, [raw = stream->get()] { raw->close(); });
        auto agreed = co_await connect_through(**stream, proxy, std::move(target));
        answer.disarm();
        if (!agreed) co_return agreed.error();
        co_return std::move(*socket);
    }
    co_return last;
}

Awaitable<Result<StreamSocket>> Dialer::dial(ClientId client, Endpoint target, std::string host) {
    if (!settings_.proxy) co_return co_await connect(client, target, settings_.timeout);
    if (host.empty()) host = target.address().to_string();
    co_return co_await dial_proxy(client, host_and_port(host, target.port()));
}

}  // namespace opensandbox::egress
