#include "runtime/native/network/resolver_sockets.hpp"

#include "runtime/native/network/gateway_socket.hpp"

#include <sys/socket.h>

namespace opensandbox::runtime::native {

namespace {

constexpr int kBindAttempts = 16;

}  // namespace

Result<ResolverSockets> open_resolver_sockets(net::Ipv4Address gateway) {
    Error last;
    for (int round = 0; round < kBindAttempts; ++round) {
        ResolverSockets sockets;
        auto udp = bind_gateway(SOCK_DGRAM, gateway, sockets.port);
        if (!udp) return udp.error();
        auto tcp = bind_gateway(SOCK_STREAM, gateway, sockets.port);
        if (tcp) {
            sockets.udp = std::move(*udp);
            sockets.tcp = std::move(*tcp);
            return sockets;
        }
        last = tcp.error();
    }
    return last;
}

}  // namespace opensandbox::runtime::native
