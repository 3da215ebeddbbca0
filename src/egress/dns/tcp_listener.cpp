#include "egress/dns/tcp_listener.hpp"

#include "net/dns/framing.hpp"
#include "net/socket_stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>

namespace opensandbox::egress::dns {

namespace {

using asio::ip::tcp;

constexpr auto as_tuple_awaitable = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t max_query = 4096;
/// Beyond all upstreams' time.
constexpr std::chrono::seconds max_answer{600};

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
        auto [failed, socket] = co_await self->acceptor_.async_accept(as_tuple_awaitable);
        if (self->stopped_) co_return;
        if (failed) {
            // No descriptors left, say: what lasts must not spin.
            co_await net::sleep_for(std::chrono::milliseconds(100));
            continue;
        }
        self->begin(std::move(socket));
    }
}

void TcpListener::begin(tcp::socket socket) {
    const auto client = identify_(connection_arrival(socket.native_handle()));
    if (!client) return;
    Turn turn = resolver_->connection_turn(*client);
    if (!turn.taken()) return;
    std::shared_ptr<net::Stream> stream = net::make_stream(net::StreamSocket(std::move(socket)));
    net::spawn(executor_, serve(shared_from_this(), std::move(stream), *client, std::move(turn)),
               "dns: a connection");
}

Awaitable<void> TcpListener::serve(std::shared_ptr<TcpListener> self,
                                   std::shared_ptr<net::Stream> stream, ClientId client,
                                   Turn turn) {
    const auto idle = self->resolver_->settings().clients.connection_idle;
    net::Deadline deadline(self->executor_, idle, [stream] { stream->close(); });
    while (!self->stopped_) {
        auto message = co_await net::dns::read_framed(*stream, max_query);
        if (!message || self->stopped_) co_return;
        // Answers have limits of their own, made of those of the upstreams.
        deadline.extend(max_answer);
        std::string reply;
        auto pending = self->resolver_->answer_now(client, *message, true, reply);
        if (pending) reply = co_await Resolver::answer(self->resolver_, std::move(*pending));
        if (reply.empty()) co_return;
        deadline.extend(idle);
        const std::string bytes = net::dns::framed(reply);
        const Status sent = co_await net::write_all(*stream, bytes);
        if (!sent) co_return;
    }
}

}  // namespace opensandbox::egress::dns
