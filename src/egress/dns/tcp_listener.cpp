#include "egress/dns/tcp_listener.hpp"

#include "net/dns/framing.hpp"
#include "net/socket_stream.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>
#include <deque>

namespace opensandbox::egress::dns {

namespace {

using asio::ip::tcp;

constexpr std::size_t kMaxQuery = 4096;
/// Beyond all upstreams' time.
constexpr std::chrono::seconds kMaxAnswer{600};
constexpr std::size_t kMaxWaiting = 16;
constexpr std::size_t kMaxUnsent = 64;

}  // namespace

TcpListener::TcpListener(asio::any_io_executor executor, std::shared_ptr<Resolver> resolver,
                         Identify identify)
    : executor_(executor),
      resolver_(std::move(resolver)),
      identify_(std::move(identify)),
      acceptor_(executor) {}

Status TcpListener::start(UniqueFd socket) {
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0) {
        return Error::from_errno(errno, "look at a TCP socket");
    }
    const Status reporting = report_arrival(socket.get(), local.ss_family);
    if (!reporting) return reporting;
    net::set_tcp_options(socket.get());
    boost::system::error_code failed;
    acceptor_.assign(local.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), socket.get(), failed);
    if (failed) return Error(ErrorCode::io, "serve a TCP socket: " + failed.message());
    (void)socket.release();
    net::spawn(executor_, run(shared_from_this()), "dns over TCP");
    return {};
}

void TcpListener::stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
}

tcp::endpoint TcpListener::endpoint() const {
    boost::system::error_code ignored;
    return acceptor_.local_endpoint(ignored);
}

Awaitable<void> TcpListener::run(std::shared_ptr<TcpListener> self) {
    while (!self->stopped_) {
        auto [failed, socket] = co_await self->acceptor_.async_accept(kAsTupleAwaitable);
        if (self->stopped_) co_return;
        if (failed) {
            // No descriptors left, say: what lasts must not spin.
            co_await net::sleep_for(std::chrono::milliseconds(100));
            continue;
        }
        self->begin(std::move(socket));
    }
}

/// One client's, with what is under way on it.
struct TcpListener::Connection {
    Connection(std::shared_ptr<net::Stream> s, ClientId c, Turn t, std::chrono::seconds i)
        : stream(std::move(s)),
          client(c),
          turn(std::move(t)),
          idle(i),
          deadline(stream->executor(), i, [kept = stream] { kept->close(); }) {}

    /// Nothing happens for long only while nothing is waited for: answers have limits of their own.
    void note() {
        if (waiting == 0) {
            deadline.extend(idle);
        } else {
            deadline.extend(kMaxAnswer);
        }
    }

    std::shared_ptr<net::Stream> stream;
    ClientId client;
    Turn turn;
    std::chrono::seconds idle;
    net::Deadline deadline;
    std::size_t waiting = 0;  ///< queries without an answer yet
    std::deque<std::string> unsent;
    bool sending = false;
};

void TcpListener::begin(tcp::socket socket) {
    const auto client = identify_(connection_arrival(socket.native_handle()));
    if (!client) return;
    Turn turn = resolver_->connection_turn(*client);
    if (!turn.taken()) return;
    std::shared_ptr<net::Stream> stream = net::make_stream(net::StreamSocket(std::move(socket)));
    auto connection = std::make_shared<Connection>(std::move(stream), *client, std::move(turn),
                                                   resolver_->settings().clients.connection_idle);
    net::spawn(executor_, serve(shared_from_this(), std::move(connection)), "dns: a connection");
}

Awaitable<void> TcpListener::serve(std::shared_ptr<TcpListener> self,
                                   std::shared_ptr<Connection> connection) {
    while (!self->stopped_) {
        auto message = co_await net::dns::read_framed(*connection->stream, kMaxQuery);
        if (!message || self->stopped_) co_return;
        std::string reply;
        auto pending = self->resolver_->answer_now(connection->client, *message, true, reply);
        if (!pending && reply.empty()) {
            // Not even a header: what follows cannot be trusted to be framed.
            connection->stream->close();
            co_return;
        }
        if (!pending) {
            co_await send(connection, std::move(reply));
        } else if (++connection->waiting < kMaxWaiting) {
            net::spawn(self->executor_, finish(self, connection, std::move(*pending)),
                       "dns: a query");
        } else {
            co_await finish(self, connection, std::move(*pending));
        }
        connection->note();
    }
}

Awaitable<void> TcpListener::finish(std::shared_ptr<TcpListener> self,
                                    std::shared_ptr<Connection> connection, PendingQuery pending) {
    std::string reply = co_await Resolver::answer(self->resolver_, std::move(pending));
    --connection->waiting;
    if (!reply.empty()) co_await send(connection, std::move(reply));
    connection->note();
}

/// Sends it, or leaves it to whoever is sending.
Awaitable<void> TcpListener::send(std::shared_ptr<Connection> connection, std::string reply) {
    connection->unsent.push_back(net::dns::framed(reply));
    if (connection->unsent.size() > kMaxUnsent) {
        // It asks but does not read.
        connection->stream->close();
        connection->unsent.clear();
    }
    if (connection->sending) co_return;
    connection->sending = true;
    while (!connection->unsent.empty()) {
        const std::string bytes = std::move(connection->unsent.front());
        connection->unsent.pop_front();
        const Status sent = co_await net::write_all(*connection->stream, bytes);
        if (!sent) connection->unsent.clear();
    }
    connection->sending = false;
}

}  // namespace opensandbox::egress::dns
