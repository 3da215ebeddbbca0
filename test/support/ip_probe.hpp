#pragma once

#include "support/network_namespace.hpp"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <system_error>

/// Sockets in network namespaces of a test's own, to see what gets through and what does not.
namespace opensandbox::test {

/// Far beyond what any answer takes: a test that waits so long has failed.
inline constexpr int kPatienceMs = 15000;

struct SocketAddress {
    SocketAddress(const std::string& text, int port) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
        auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
        if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
            v4.sin_family = AF_INET;
            v4.sin_port = htons(static_cast<std::uint16_t>(port));
            size = sizeof(v4);
        } else if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
            v6.sin6_family = AF_INET6;
            v6.sin6_port = htons(static_cast<std::uint16_t>(port));
            size = sizeof(v6);
        } else {
            throw std::invalid_argument(text);
        }
    }
    [[nodiscard]] const sockaddr* get() const {
        return reinterpret_cast<const sockaddr*>(&storage);
    }

    sockaddr_storage storage{};
    socklen_t size = 0;
};

inline int checked(int result, const char* what) {
    if (result < 0) throw std::system_error(errno, std::generic_category(), what);
    return result;
}

inline bool wait_for(int fd, short events) {
    pollfd entry{fd, events, 0};
    return checked(::poll(&entry, 1, kPatienceMs), "poll") == 1;
}

inline UniqueFd open_socket(const SocketAddress& address, int type) {
    UniqueFd fd(checked(::socket(address.get()->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                        "socket"));
    const int on = 1;
    checked(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "SO_REUSEADDR");
    return fd;
}

inline UniqueFd bind_socket(const TestNamespace& place, const std::string& address, int port,
                            int type) {
    return place.run([&] {
        const SocketAddress at(address, port);
        auto fd = open_socket(at, type);
        checked(::bind(fd.get(), at.get(), at.size), "bind");
        return fd;
    });
}

/// A TCP listener inside a namespace.
class Listener {
  public:
    Listener(const TestNamespace& place, const std::string& address, int port, int backlog = 16)
        : fd_(bind_socket(place, address, port, SOCK_STREAM)) {
        checked(::listen(fd_.get(), backlog), "listen");
    }

    [[nodiscard]] UniqueFd accept() const {
        if (!wait_for(fd_.get(), POLLIN)) throw std::runtime_error("nobody connected");
        return UniqueFd(checked(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept"));
    }
    /// The address the next connection comes from.
    [[nodiscard]] std::string accept_peer() const {
        const auto connection = accept();
        sockaddr_storage peer{};
        socklen_t size = sizeof(peer);
        checked(::getpeername(connection.get(), reinterpret_cast<sockaddr*>(&peer), &size),
                "getpeername");
        char text[INET6_ADDRSTRLEN];
        const void* bytes = &reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
        if (peer.ss_family == AF_INET6)
            bytes = &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
        return ::inet_ntop(peer.ss_family, bytes, text, sizeof(text));
    }

  private:
    UniqueFd fd_;
};

/// Begins a TCP connection.
inline UniqueFd start_connect(const TestNamespace& place, const std::string& address, int port) {
    return place.run([&] {
        const SocketAddress to(address, port);
        auto fd = open_socket(to, SOCK_STREAM);
        if (::connect(fd.get(), to.get(), to.size) != 0 && errno != EINPROGRESS)
            throw std::system_error(errno, std::generic_category(), "connect");
        return fd;
    });
}

/// 0 when connected, EINPROGRESS when undecided, else the errno it failed with.
inline int connect_state(const UniqueFd& fd) {
    pollfd entry{fd.get(), POLLOUT, 0};
    if (checked(::poll(&entry, 1, 0), "poll") == 0) return EINPROGRESS;
    int error = 0;
    socklen_t size = sizeof(error);
    checked(::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size), "SO_ERROR");
    return error;
}

/// 0 when a connection was made, else the errno; EINPROGRESS when patience ran out.
inline int connect_to(const TestNamespace& place, const std::string& address, int port) {
    UniqueFd fd;
    try {
        fd = start_connect(place, address, port);
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    wait_for(fd.get(), POLLOUT);
    return connect_state(fd);
}

/// What comes out of `server` when `text` goes into `client`, both ends of one connection.
inline std::string echo(const UniqueFd& client, const UniqueFd& server, const std::string& text) {
    checked(static_cast<int>(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL)), "send");
    if (!wait_for(server.get(), POLLIN)) return "(nothing)";
    char buffer[256];
    const auto size =
        checked(static_cast<int>(::recv(server.get(), buffer, sizeof(buffer), 0)), "recv");
    return {buffer, static_cast<std::size_t>(size)};
}

/// Receives datagrams inside a namespace.
class Receiver {
  public:
    Receiver(const TestNamespace& place, const std::string& address, int port)
        : fd_(bind_socket(place, address, port, SOCK_DGRAM)) {}

    [[nodiscard]] std::string next() const {
        if (!wait_for(fd_.get(), POLLIN)) return "(nothing)";
        char buffer[256];
        const auto size =
            checked(static_cast<int>(::recv(fd_.get(), buffer, sizeof(buffer), 0)), "recv");
        return {buffer, static_cast<std::size_t>(size)};
    }

  private:
    UniqueFd fd_;
};

inline void send_datagram(const TestNamespace& place, const std::string& source,
                          const std::string& to, int port, const std::string& text) {
    const auto fd = bind_socket(place, source, 0, SOCK_DGRAM);
    const SocketAddress target(to, port);
    checked(static_cast<int>(
                ::sendto(fd.get(), text.data(), text.size(), 0, target.get(), target.size)),
            "sendto");
}

/// Sees every TCP segment that arrives in a namespace.
class SegmentTap {
  public:
    explicit SegmentTap(const TestNamespace& place)
        : fd_(place.run([] {
              return UniqueFd(checked(
                  ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP), "raw"));
          })) {}

    /// The port that the next segment comes from; 0 when patience ran out.
    [[nodiscard]] int next_source_port() const {
        if (!wait_for(fd_.get(), POLLIN)) return 0;
        std::uint8_t packet[256];
        checked(static_cast<int>(::recv(fd_.get(), packet, sizeof(packet), 0)), "recv");
        tcphdr segment;
        std::memcpy(&segment, packet + (packet[0] & 0xf) * 4, sizeof(segment));
        return ntohs(segment.source);
    }

  private:
    UniqueFd fd_;
};

/// Sends a segment that both opens and ends a connection, which fits none.
inline void send_senseless_segment(const TestNamespace& place, const std::string& source,
                                   const std::string& to, int source_port, int port) {
    struct {
        in_addr source, to;
        std::uint8_t zero = 0, protocol = IPPROTO_TCP;
        std::uint16_t size = htons(sizeof(tcphdr));
        tcphdr segment{};
    } summed;
    static_assert(sizeof(summed) == 32);
    const SocketAddress from(source, source_port);
    const SocketAddress target(to, 0);
    summed.source = reinterpret_cast<const sockaddr_in&>(from.storage).sin_addr;
    summed.to = reinterpret_cast<const sockaddr_in&>(target.storage).sin_addr;
    summed.segment.source = htons(static_cast<std::uint16_t>(source_port));
    summed.segment.dest = htons(static_cast<std::uint16_t>(port));
    summed.segment.doff = sizeof(tcphdr) / 4;
    summed.segment.syn = summed.segment.fin = 1;
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < sizeof(summed); at += 2) {
        std::uint16_t word;
        std::memcpy(&word, reinterpret_cast<const char*>(&summed) + at, sizeof(word));
        sum += word;
    }
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    summed.segment.check = static_cast<std::uint16_t>(~sum);
    place.run([&] {
        const UniqueFd fd(
            checked(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP), "raw socket"));
        checked(static_cast<int>(::sendto(fd.get(), &summed.segment, sizeof(tcphdr), 0,
                                          target.get(), target.size)),
                "sendto");
    });
}

/// How a datagram was refused, and which address the refusal came from.
struct Refusal {
    int error = 0;
    std::string offender;
};

/// Sends one IPv4 datagram and waits for the ICMP error about it; error 0 when none came.
inline Refusal datagram_refusal(const TestNamespace& place, const std::string& to, int port) {
    return place.run([&]() -> Refusal {
        const SocketAddress target(to, port);
        const auto fd = open_socket(target, SOCK_DGRAM);
        const int on = 1;
        checked(::setsockopt(fd.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof(on)), "IP_RECVERR");
        checked(static_cast<int>(::sendto(fd.get(), "?", 1, 0, target.get(), target.size)),
                "sendto");
        if (!wait_for(fd.get(), POLLERR)) return {};

        alignas(cmsghdr) char control[512];
        msghdr message{};
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        checked(static_cast<int>(::recvmsg(fd.get(), &message, MSG_ERRQUEUE)), "recvmsg");
        for (auto* part = CMSG_FIRSTHDR(&message); part != nullptr;
             part = CMSG_NXTHDR(&message, part)) {
            if (part->cmsg_level != IPPROTO_IP || part->cmsg_type != IP_RECVERR) continue;
            auto* error = reinterpret_cast<sock_extended_err*>(CMSG_DATA(part));
            const auto* from = reinterpret_cast<const sockaddr_in*>(SO_EE_OFFENDER(error));
            char text[INET_ADDRSTRLEN];
            return {static_cast<int>(error->ee_errno),
                    ::inet_ntop(AF_INET, &from->sin_addr, text, sizeof(text))};
        }
        return {};
    });
}

}  // namespace opensandbox::test
