#include "egress/dns/arrival.hpp"

#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace opensandbox::egress::dns {

namespace {

namespace ip = boost::asio::ip;

constexpr std::size_t kControlSize = 256;
/// The reading half of IPV6_RECVPKTINFO for streams; the C library names it only on request.
constexpr int kIpv62292PacketOptions = 6;

ip::address address4(const in_addr& address) {
    return ip::address_v4(ntohl(address.s_addr));
}

ip::address address6(const in6_addr& address, std::uint32_t scope) {
    ip::address_v6::bytes_type bytes{};
    std::memcpy(bytes.data(), &address, bytes.size());
    return ip::address_v6(bytes, scope);
}

std::uint32_t scope_of(const in6_addr& address, unsigned interface) {
    return IN6_IS_ADDR_LINKLOCAL(&address) ? interface : 0;
}

}  // namespace

ip::address address_of(const sockaddr_storage& storage, std::uint16_t* port) {
    if (storage.ss_family == AF_INET) {
        sockaddr_in four{};
        std::memcpy(&four, &storage, sizeof four);
        if (port != nullptr) *port = ntohs(four.sin_port);
        return address4(four.sin_addr);
    }
    if (storage.ss_family != AF_INET6) return {};
    sockaddr_in6 six{};
    std::memcpy(&six, &storage, sizeof six);
    if (port != nullptr) *port = ntohs(six.sin6_port);
    return address6(six.sin6_addr, six.sin6_scope_id);
}

Status report_arrival(int socket, int family) {
    const int on = 1;
    const int failed = family == AF_INET6
                           ? ::setsockopt(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on)
                           : ::setsockopt(socket, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    if (failed != 0) return Error::from_errno(errno, "ask for packet information");
    return {};
}

void read_arrival(const msghdr& message, Arrival& arrival) {
    auto* header = const_cast<msghdr*>(&message);
    for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO &&
            part->cmsg_len >= CMSG_LEN(sizeof(in_pktinfo))) {
            in_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(part), sizeof info);
            arrival.interface = static_cast<unsigned>(info.ipi_ifindex);
            arrival.local = address4(info.ipi_spec_dst);
        } else if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO &&
                   part->cmsg_len >= CMSG_LEN(sizeof(in6_pktinfo))) {
            in6_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(part), sizeof info);
            arrival.interface = info.ipi6_ifindex;
            arrival.local = address6(info.ipi6_addr, scope_of(info.ipi6_addr, info.ipi6_ifindex));
        }
    }
}

Arrival connection_arrival(int socket) {
    Arrival arrival;
    arrival.tcp = true;
    alignas(cmsghdr) std::array<char, kControlSize> control{};
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) == 0) {
        arrival.local = address_of(storage);
    }
    const ip::address local = arrival.local;
    socklen_t length = control.size();
    const bool six = storage.ss_family == AF_INET6;
    const int failed =
        six ? ::getsockopt(socket, IPPROTO_IPV6, kIpv62292PacketOptions, control.data(), &length)
            : ::getsockopt(socket, IPPROTO_IP, IP_PKTOPTIONS, control.data(), &length);
    if (failed == 0) {
        msghdr message{};
        message.msg_control = control.data();
        message.msg_controllen = length;
        read_arrival(message, arrival);
        arrival.local = local;
    }
    storage = {};
    size = sizeof storage;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &size) == 0) {
        arrival.peer = address_of(storage, &arrival.peer_port);
    }
    return arrival;
}

}  // namespace opensandbox::egress::dns
