#include "egress/dns/udp_listener.hpp"

#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>

namespace opensandbox::egress::dns {

namespace {

using asio::ip::udp;

/// Full batches that are served before others get their turn.
constexpr int kMaxBatches = 4;
/// So that a burst of queries waits instead of being lost; the kernel gives what it may.
constexpr int kReceiveBuffer = 1 << 20;

}  // namespace

UdpListener::UdpListener(asio::any_io_executor executor, std::shared_ptr<Resolver> resolver,
                         Identify identify)
    : executor_(executor),
      resolver_(std::move(resolver)),
      identify_(std::move(identify)),
      socket_(executor) {}

Status UdpListener::start(UniqueFd socket) {
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0) {
        return Error::from_errno(errno, "look at a UDP socket");
    }
    const Status reporting = report_arrival(socket.get(), local.ss_family);
    if (!reporting) return reporting;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
    boost::system::error_code failed;
    socket_.assign(local.ss_family == AF_INET6 ? udp::v6() : udp::v4(), socket.get(), failed);
    if (failed) return Error(ErrorCode::io, "serve a UDP socket: " + failed.message());
    (void)socket.release();
    socket_.non_blocking(true, failed);
    if (failed) return Error(ErrorCode::io, "serve a UDP socket: " + failed.message());
    net::spawn(executor_, run(shared_from_this()), "dns over UDP");
    return {};
}

void UdpListener::stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    socket_.close(ignored);
}

udp::endpoint UdpListener::endpoint() const {
    boost::system::error_code ignored;
    return socket_.local_endpoint(ignored);
}

Awaitable<void> UdpListener::run(std::shared_ptr<UdpListener> self) {
    while (!self->stopped_) {
        auto [failed] =
            co_await self->socket_.async_wait(udp::socket::wait_read, kAsTupleAwaitable);
        if (self->stopped_) co_return;
        if (failed) {
            // What lasts must not spin.
            co_await net::sleep_for(std::chrono::milliseconds(10));
            continue;
        }
        for (int batch = 0; batch < kMaxBatches; ++batch) {
            const std::size_t count = self->datagrams_.receive(self->socket_.native_handle());
            self->serve(count);
            if (count < Datagrams::kBatch) break;
        }
    }
}

void UdpListener::serve(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto client = identify_(datagrams_.arrival(i));
        if (!client) continue;
        std::string& reply = datagrams_.reply(i);
        auto pending = resolver_->answer_now(*client, datagrams_.message(i), false, reply);
        if (pending) {
            net::spawn(executor_,
                       finish(shared_from_this(), std::move(*pending), datagrams_.path(i)),
                       "dns: a query");
        } else if (!reply.empty()) {
            datagrams_.queue(i);
        }
    }
    datagrams_.flush(socket_.native_handle());
}

Awaitable<void> UdpListener::finish(std::shared_ptr<UdpListener> self, PendingQuery pending,
                                    ReturnPath path) {
    const std::string reply = co_await Resolver::answer(self->resolver_, std::move(pending));
    if (reply.empty() || self->stopped_) co_return;
    send_back(self->socket_.native_handle(), path, reply);
}

}  // namespace opensandbox::egress::dns
