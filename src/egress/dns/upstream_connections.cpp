#include "egress/dns/upstream_connections.hpp"

#include "net/dns/framing.hpp"
#include "net/socket_stream.hpp"
#include "net/stream.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace opensandbox::egress::dns {

namespace {

using asio::ip::tcp;

constexpr std::size_t kMaxKept = 16;

Error unavailable(const tcp::endpoint& there, std::string_view what) {
    return {ErrorCode::unavailable, there.address().to_string() + ": " + std::string(what)};
}

}  // namespace

UpstreamConnections::UpstreamConnections(asio::any_io_executor executor, UpstreamServer server,
                                         std::chrono::seconds idle)
    : executor_(std::move(executor)), server_(std::move(server)), idle_(idle) {}

Awaitable<Result<std::string>> UpstreamConnections::exchange(std::string message,
                                                             std::chrono::milliseconds timeout) {
    const auto end = Clock::now() + timeout;
    const auto executor = executor_;
    const auto server = server_;
    const auto pool = pool_;
    const auto idle = idle_;
    while (!pool->streams.empty()) {
        const std::shared_ptr<net::Stream> kept = std::move(pool->streams.back());
        pool->streams.pop_back();
        if (!kept->quiet()) continue;
        auto reply = co_await ask(kept, message, end);
        if (reply) {
            keep(executor, pool, kept, idle);
            co_return reply;
        }
        if (reply.error().code() == ErrorCode::timeout) co_return reply;
        // The server closed it just now: a new one tells.
        break;
    }
    auto connected = co_await connect(executor, server, end);
    if (!connected) co_return connected.error();
    const std::shared_ptr<net::Stream> stream = std::move(*connected);
    auto reply = co_await ask(stream, message, end);
    if (reply) keep(executor, pool, stream, idle);
    co_return reply;
}

Awaitable<Result<std::shared_ptr<net::Stream>>> UpstreamConnections::connect(
    asio::any_io_executor executor, UpstreamServer server, Clock::time_point end) {
    const tcp::endpoint there(server.endpoint.address(), server.endpoint.port());
    auto socket = std::make_shared<tcp::socket>(executor);
    boost::system::error_code failed;
    socket->open(there.protocol(), failed);
    if (failed) co_return unavailable(there, failed.message());
    if (server.hook) {
        const Status prepared = server.hook(socket->native_handle());
        if (!prepared) co_return prepared.error();
    }
    net::Deadline deadline(executor, end - Clock::now(), [socket] {
        boost::system::error_code ignored;
        socket->close(ignored);
    });
    auto [refused] = co_await socket->async_connect(there, kAsTupleAwaitable);
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "connecting took too long");
    if (refused) co_return unavailable(there, refused.message());
    deadline.disarm();
    net::set_tcp_options(socket->native_handle());
    std::shared_ptr<net::Stream> stream = net::make_stream(net::StreamSocket(std::move(*socket)));
    co_return stream;
}

Awaitable<Result<std::string>> UpstreamConnections::ask(std::shared_ptr<net::Stream> stream,
                                                        std::string message,
                                                        Clock::time_point end) {
    net::Deadline deadline(stream->executor(), end - Clock::now(), [stream] { stream->close(); });
    const std::string bytes = net::dns::framed(message);
    const Status sent = co_await net::write_all(*stream, bytes);
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "no answer over TCP");
    if (!sent) co_return sent.error();
    auto reply = co_await net::dns::read_framed(*stream);
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "no answer over TCP");
    co_return reply;
}

void UpstreamConnections::keep(const asio::any_io_executor& executor,
                               const std::shared_ptr<Pool>& pool,
                               std::shared_ptr<net::Stream> stream, std::chrono::seconds idle) {
    if (pool->closed || pool->streams.size() >= kMaxKept) return;
    pool->streams.push_back(std::move(stream));
    if (pool->sweep && !pool->sweep->expired()) {
        pool->sweep->extend(idle);
        return;
    }
    const std::weak_ptr<Pool> weak = pool;
    pool->sweep.emplace(executor, idle, [weak] {
        if (const auto alive = weak.lock()) alive->streams.clear();
    });
}

void UpstreamConnections::close() {
    pool_->closed = true;
    pool_->streams.clear();
    pool_->sweep.reset();
}

std::size_t UpstreamConnections::idle() const {
    return pool_->streams.size();
}

}  // namespace opensandbox::egress::dns
