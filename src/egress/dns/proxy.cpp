#include "egress/dns/proxy.hpp"

#include <netinet/in.h>

#include <cerrno>

namespace opensandbox::egress::dns {

namespace {

using asio::ip::udp;

/// The kernel may choose a UDP port that is taken for TCP.
constexpr int kPortAttempts = 16;
constexpr int kBacklog = 1024;

Result<UniqueFd> bound_socket(const udp::endpoint& at, int type) {
    const int family = at.address().is_v6() ? AF_INET6 : AF_INET;
    UniqueFd socket(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.get() < 0) return Error::from_errno(errno, "make a socket");
    const int on = 1;
    if (family == AF_INET6 &&
        ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) {
        return Error::from_errno(errno, "serve IPv6 only");
    }
    // With UDP it would let another socket take the port over.
    if (type == SOCK_STREAM) {
        (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (::bind(socket.get(), at.data(), static_cast<socklen_t>(at.size())) != 0) {
        return Error::from_errno(
            errno, "bind " + at.address().to_string() + " port " + std::to_string(at.port()));
    }
    if (type == SOCK_STREAM && ::listen(socket.get(), kBacklog) != 0) {
        return Error::from_errno(errno, "listen on " + at.address().to_string());
    }
    return socket;
}

Result<std::uint16_t> port_of(int socket) {
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&local), &size) != 0) {
        return Error::from_errno(errno, "look at a socket");
    }
    std::uint16_t port = 0;
    (void)address_of(local, &port);
    return port;
}

Status check(const ProxySettings& settings, const Neighbours& neighbours) {
    const auto wrong = [](std::string_view what) {
        return Error(ErrorCode::invalid_argument, "dns proxy: " + std::string(what));
    };
    const UpstreamSettings& upstream = settings.upstream;
    if (!neighbours.gate) return wrong("needs a gate");
    if (upstream.servers.empty()) return wrong("needs an upstream resolver");
    for (const UpstreamServer& server : upstream.servers) {
        if (server.endpoint.port() == 0 || server.endpoint.address().is_unspecified()) {
            return wrong("an upstream needs an address and a port");
        }
    }
    if (upstream.timeout <= std::chrono::milliseconds(0) ||
        upstream.timeout > std::chrono::seconds(120)) {
        return wrong("the upstream timeout must be above 0 and at most 120 s");
    }
    if (upstream.probe_interval < std::chrono::seconds(1) ||
        upstream.probe_interval > std::chrono::seconds(3600)) {
        return wrong("the probe interval must be 1 to 3600 s");
    }
    if (upstream.udp_size < net::dns::kPlainUdp || upstream.udp_size > 4096) {
        return wrong("the upstream UDP size must be 512 to 4096");
    }
    if (auto question = probe_question(upstream.probe); !question) return question.error();
    return {};
}

}  // namespace

Proxy::Proxy(asio::any_io_executor executor, ProxySettings settings, Neighbours neighbours)
    : executor_(executor),
      resolver_(std::make_shared<Resolver>(executor, std::move(settings), std::move(neighbours))) {}

Proxy::~Proxy() {
    stop();
}

Result<std::unique_ptr<Proxy>> Proxy::create(asio::any_io_executor executor, ProxySettings settings,
                                             Neighbours neighbours) {
    const Status fit = check(settings, neighbours);
    if (!fit) return fit.error();
    std::unique_ptr<Proxy> proxy(
        new Proxy(std::move(executor), std::move(settings), std::move(neighbours)));
    proxy->resolver_->start();
    return proxy;
}

Result<std::uint16_t> Proxy::listen(const asio::ip::address& address, std::uint16_t port,
                                    const Identify& identify) {
    Error last(ErrorCode::internal, "no port was tried");
    for (int attempt = 0; attempt < (port == 0 ? kPortAttempts : 1); ++attempt) {
        auto datagrams = bound_socket(udp::endpoint(address, port), SOCK_DGRAM);
        if (!datagrams) return datagrams.error();
        auto bound = port_of(datagrams->get());
        if (!bound) return bound.error();
        auto streams = bound_socket(udp::endpoint(address, *bound), SOCK_STREAM);
        if (!streams) {
            last = streams.error();
            continue;
        }
        const Status over_udp = serve_udp(std::move(*datagrams), identify);
        if (!over_udp) return over_udp.error();
        const Status over_tcp = serve_tcp(std::move(*streams), identify);
        if (!over_tcp) return over_tcp.error();
        return *bound;
    }
    return last;
}

Status Proxy::serve_udp(UniqueFd socket, Identify identify) {
    auto listener = std::make_shared<UdpListener>(executor_, resolver_, std::move(identify));
    const Status started = listener->start(std::move(socket));
    if (started) udp_.push_back(std::move(listener));
    return started;
}

Status Proxy::serve_tcp(UniqueFd socket, Identify identify) {
    auto listener = std::make_shared<TcpListener>(executor_, resolver_, std::move(identify));
    const Status started = listener->start(std::move(socket));
    if (started) tcp_.push_back(std::move(listener));
    return started;
}

void Proxy::stop() {
    for (const auto& listener : udp_)
        listener->stop();
    for (const auto& listener : tcp_)
        listener->stop();
    udp_.clear();
    tcp_.clear();
    resolver_->stop();
}

}  // namespace opensandbox::egress::dns
