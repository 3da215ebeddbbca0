#pragma once

#include "support/ip_probe.hpp"
#include "support/veth.hpp"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/udp.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// Frames that a raw socket sends past the kernel's own way out.
namespace opensandbox::test {

using Bytes = std::vector<std::uint8_t>;

inline void put_bytes(Bytes& to, const auto& bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

inline void put_number(Bytes& to, unsigned value) {
    to.push_back(static_cast<std::uint8_t>(value >> 8 & 0xff));
    to.push_back(static_cast<std::uint8_t>(value & 0xff));
}

inline unsigned internet_checksum(Bytes bytes) {
    if (bytes.size() % 2 != 0) bytes.push_back(0);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2)
        sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

inline Bytes address_bytes(const net::IpAddress& address) {
    Bytes bytes;
    if (address.is_v6())
        put_bytes(bytes, address.to_v6().to_bytes());
    else
        put_bytes(bytes, address.to_v4().to_bytes());
    return bytes;
}

inline Bytes udp_datagram(const net::IpAddress& from, const net::IpAddress& to, int port,
                          const std::string& text) {
    const auto size = static_cast<unsigned>(8 + text.size());
    Bytes summed = address_bytes(from);
    put_bytes(summed, address_bytes(to));
    put_number(summed, IPPROTO_UDP);
    put_number(summed, size);
    Bytes datagram;
    put_number(datagram, 4000);
    put_number(datagram, static_cast<unsigned>(port));
    put_number(datagram, size);
    put_number(datagram, 0);
    put_bytes(datagram, text);
    put_bytes(summed, datagram);
    const unsigned checksum = internet_checksum(summed);
    datagram[6] = static_cast<std::uint8_t>(checksum >> 8);
    datagram[7] = static_cast<std::uint8_t>(checksum & 0xff);
    return datagram;
}

/// A UDP datagram in a frame out of this end of a pair.
inline Bytes udp_frame(const net::MacAddress& own, const net::MacAddress& peer,
                       const std::string& from, const std::string& to, int port,
                       const std::string& text) {
    const auto source = ip(from);
    const auto target = ip(to);
    const auto datagram = udp_datagram(source, target, port, text);
    Bytes frame;
    put_bytes(frame, peer);
    put_bytes(frame, own);
    put_number(frame, source.is_v6() ? ETH_P_IPV6 : ETH_P_IP);
    if (source.is_v6()) {
        put_bytes(frame, std::array<std::uint8_t, 4>{0x60, 0, 0, 0});
        put_number(frame, static_cast<unsigned>(datagram.size()));
        put_number(frame, IPPROTO_UDP << 8 | 64);
    } else {
        Bytes header{0x45, 0};
        put_number(header, static_cast<unsigned>(20 + datagram.size()));
        put_bytes(header, std::array<std::uint8_t, 8>{0, 1, 0, 0, 64, IPPROTO_UDP, 0, 0});
        put_bytes(header, address_bytes(source));
        put_bytes(header, address_bytes(target));
        const unsigned checksum = internet_checksum(header);
        header[10] = static_cast<std::uint8_t>(checksum >> 8);
        header[11] = static_cast<std::uint8_t>(checksum & 0xff);
        put_bytes(frame, header);
    }
    if (source.is_v6()) {
        put_bytes(frame, address_bytes(source));
        put_bytes(frame, address_bytes(target));
    }
    put_bytes(frame, datagram);
    return frame;
}

/// What a raw socket is told besides the frame.
struct FrameOptions {
    std::uint32_t mark = 0;
    bool past_the_queue = false;
};

/// 0, or the errno of the send.
inline int send_frame(const VethEnd& end, const Bytes& frame, const FrameOptions& options = {}) {
    const int index = end.index();
    return end.place->run([&] {
        const UniqueFd fd(checked(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), "AF_PACKET"));
        const int on = 1;
        if (options.mark != 0)
            checked(
                ::setsockopt(fd.get(), SOL_SOCKET, SO_MARK, &options.mark, sizeof(options.mark)),
                "SO_MARK");
        if (options.past_the_queue)
            checked(::setsockopt(fd.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)),
                    "PACKET_QDISC_BYPASS");
        sockaddr_ll to{};
        to.sll_family = AF_PACKET;
        to.sll_ifindex = index;
        to.sll_halen = 6;
        const auto sent = ::sendto(fd.get(), frame.data(), frame.size(), 0,
                                   reinterpret_cast<sockaddr*>(&to), sizeof(to));
        return sent < 0 ? errno : 0;
    });
}

}  // namespace opensandbox::test
