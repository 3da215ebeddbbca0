#include "egress/dns/datagrams.hpp"

#include <netinet/in.h>
#include <sys/uio.h>

#include <array>
#include <cstring>

namespace opensandbox::egress::dns {

namespace {

/// Either kind of packet information; large enough also for both.
constexpr std::size_t kDatagramControlSize =
    CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo));

/// Control data that makes our address the source; returns its size.
std::size_t write_source(const Arrival& arrival, char* control) {
    if (arrival.local.is_unspecified()) return 0;
    cmsghdr header{};
    if (arrival.local.is_v4()) {
        in_pktinfo info{};
        info.ipi_spec_dst.s_addr = htonl(arrival.local.to_v4().to_uint());
        header.cmsg_level = IPPROTO_IP;
        header.cmsg_type = IP_PKTINFO;
        header.cmsg_len = CMSG_LEN(sizeof info);
        std::memcpy(control, &header, sizeof header);
        std::memcpy(control + CMSG_LEN(0), &info, sizeof info);
        return CMSG_SPACE(sizeof info);
    }
    const auto local = arrival.local.to_v6();
    in6_pktinfo info{};
    const auto bytes = local.to_bytes();
    std::memcpy(&info.ipi6_addr, bytes.data(), bytes.size());
    // A link-local address means something on its link only.
    if (local.is_link_local()) info.ipi6_ifindex = arrival.interface;
    header.cmsg_level = IPPROTO_IPV6;
    header.cmsg_type = IPV6_PKTINFO;
    header.cmsg_len = CMSG_LEN(sizeof info);
    std::memcpy(control, &header, sizeof header);
    std::memcpy(control + CMSG_LEN(0), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
}

}  // namespace

struct Datagrams::Buffers {
    struct alignas(cmsghdr) Control {
        std::array<char, kDatagramControlSize> bytes{};
    };
    std::array<mmsghdr, kBatch> received{};
    std::array<iovec, kBatch> received_parts{};
    std::array<sockaddr_storage, kBatch> peers{};
    std::array<Control, kBatch> controls{};
    std::array<std::array<char, kQuery>, kBatch> queries{};
    std::array<mmsghdr, kBatch> sent{};
    std::array<iovec, kBatch> sent_parts{};
    std::array<Control, kBatch> sources{};
    std::array<std::string, kBatch> replies;
    std::array<Arrival, kBatch> arrivals;
};

Datagrams::Datagrams() : buffers_(std::make_unique<Buffers>()) {}
Datagrams::~Datagrams() = default;

std::size_t Datagrams::receive(int socket) {
    Buffers& b = *buffers_;
    for (std::size_t i = 0; i < kBatch; ++i) {
        b.received_parts[i] = {b.queries[i].data(), kQuery};
        msghdr& head = b.received[i].msg_hdr;
        head = {};
        head.msg_name = &b.peers[i];
        head.msg_namelen = sizeof b.peers[i];
        head.msg_iov = &b.received_parts[i];
        head.msg_iovlen = 1;
        head.msg_control = b.controls[i].bytes.data();
        head.msg_controllen = kDatagramControlSize;
    }
    const int count = ::recvmmsg(socket, b.received.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count <= 0) return 0;
    const auto got = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < got; ++i) {
        Arrival arrival;
        read_arrival(b.received[i].msg_hdr, arrival);
        arrival.peer = address_of(b.peers[i], &arrival.peer_port);
        b.arrivals[i] = arrival;
    }
    return got;
}

std::string_view Datagrams::message(std::size_t i) const {
    return {buffers_->queries[i].data(), buffers_->received[i].msg_len};
}

ReturnPath Datagrams::path(std::size_t i) const {
    ReturnPath path;
    path.peer = buffers_->peers[i];
    path.peer_size = buffers_->received[i].msg_hdr.msg_namelen;
    path.arrival = buffers_->arrivals[i];
    return path;
}

const Arrival& Datagrams::arrival(std::size_t i) const {
    return buffers_->arrivals[i];
}

std::string& Datagrams::reply(std::size_t i) {
    return buffers_->replies[i];
}

void Datagrams::queue(std::size_t i) {
    Buffers& b = *buffers_;
    const std::size_t slot = queued_++;
    b.sent_parts[slot] = {b.replies[i].data(), b.replies[i].size()};
    msghdr& head = b.sent[slot].msg_hdr;
    head = {};
    head.msg_name = &b.peers[i];
    head.msg_namelen = b.received[i].msg_hdr.msg_namelen;
    head.msg_iov = &b.sent_parts[slot];
    head.msg_iovlen = 1;
    head.msg_control = b.sources[slot].bytes.data();
    head.msg_controllen = write_source(b.arrivals[i], b.sources[slot].bytes.data());
    if (head.msg_controllen == 0) head.msg_control = nullptr;
}

void Datagrams::flush(int socket) {
    for (std::size_t done = 0; done < queued_;) {
        const int count =
            ::sendmmsg(socket, buffers_->sent.data() + done, static_cast<unsigned>(queued_ - done),
                       MSG_DONTWAIT | MSG_NOSIGNAL);
        // The first of the rest cannot be sent, to wherever it was meant to go: the others may.
        done += count > 0 ? static_cast<std::size_t>(count) : 1;
    }
    queued_ = 0;
}

void send_back(int socket, const ReturnPath& path, std::string_view message) {
    alignas(cmsghdr) std::array<char, kDatagramControlSize> control{};
    sockaddr_storage peer = path.peer;
    iovec part{const_cast<char*>(message.data()), message.size()};
    msghdr head{};
    head.msg_name = &peer;
    head.msg_namelen = path.peer_size;
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.data();
    head.msg_controllen = write_source(path.arrival, control.data());
    if (head.msg_controllen == 0) head.msg_control = nullptr;
    (void)::sendmsg(socket, &head, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace opensandbox::egress::dns
