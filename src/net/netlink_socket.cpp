#include "net/netlink_socket.hpp"

#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace opensandbox::net {

namespace {

/// The kernel never makes a larger part of a dump than this.
constexpr std::size_t kDatagramLimit = 32768;
/// A dump is asked again when a change interrupted it, but not for ever.
constexpr int kDumpAttempts = 16;

}  // namespace

struct NetlinkSocket::Answer {
    std::vector<std::uint8_t> data;
    NetlinkVerdict verdict;
    bool interrupted = false;
};

Error netlink_error(const NetlinkVerdict& verdict, std::string_view what) {
    std::string context(what);
    if (!verdict.explanation.empty()) context += ": " + verdict.explanation;
    auto error = Error::from_errno(verdict.error, context);
    // A link, a route and an address that are not there.
    if (verdict.error == ENODEV || verdict.error == ESRCH || verdict.error == EADDRNOTAVAIL)
        return {ErrorCode::not_found, error.message()};
    return error;
}

NetlinkSocket::NetlinkSocket(UniqueFd fd, std::uint32_t port)
    : fd_(std::move(fd)), port_(port), buffer_(kDatagramLimit) {}

Result<NetlinkSocket> NetlinkSocket::open(int protocol) {
    UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
    if (!fd) return Error::from_errno(errno, "open netlink socket");

    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    socklen_t length = sizeof(address);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
        return Error::from_errno(errno, "bind netlink socket");

    // Without these errors are as before, only longer and unexplained: no reason to fail.
    const int on = 1;
    ::setsockopt(fd.get(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    ::setsockopt(fd.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
    return NetlinkSocket(std::move(fd), address.nl_pid);
}

void NetlinkSocket::make_room(std::size_t size) {
    constexpr std::size_t kUsual = 65536;
    if (size <= std::max(kUsual, room_)) return;
    // Twice, for what the kernel itself takes of it. Without the right to it the send is refused.
    room_ = size;
    const int wanted = static_cast<int>(std::min<std::size_t>(size * 2, 1U << 30));
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof(wanted));
}

Status NetlinkSocket::send(NetlinkBytes bytes, std::string_view what) {
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    for (;;) {
        const auto sent = ::sendto(fd_.get(), bytes.data(), bytes.size(), 0,
                                   reinterpret_cast<sockaddr*>(&kernel), sizeof(kernel));
        if (sent == static_cast<ssize_t>(bytes.size())) return {};
        if (sent >= 0) return Error(ErrorCode::io, std::string(what) + ": sent in part");
        if (errno != EINTR) return Error::from_errno(errno, what);
    }
}

Result<NetlinkBytes> NetlinkSocket::receive(int flags, std::string_view what) {
    for (;;) {
        sockaddr_nl sender{};
        iovec part{buffer_.data(), buffer_.size()};
        msghdr message{};
        message.msg_name = &sender;
        message.msg_namelen = sizeof(sender);
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        const auto received = ::recvmsg(fd_.get(), &message, flags);
        if (received < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN && (flags & MSG_DONTWAIT) != 0) return NetlinkBytes();
            return Error::from_errno(errno, what);
        }
        if (sender.nl_pid != 0 || received == 0) continue;  // Processes may write to us, too.
        if ((message.msg_flags & MSG_TRUNC) != 0)
            return Error(ErrorCode::protocol, std::string(what) + ": the answer is too large");
        return NetlinkBytes(buffer_).first(static_cast<std::size_t>(received));
    }
}

Result<NetlinkSocket::Answer> NetlinkSocket::collect(std::uint32_t sequence,
                                                     std::string_view what) {
    Answer answer;
    bool malformed = false;
    for (bool finished = false; !finished;) {
        auto datagram = receive(0, what);
        if (!datagram) return datagram.error();
        const bool whole = split_netlink_datagram(*datagram, [&](NetlinkBytes message) {
            const auto& head = *reinterpret_cast<const nlmsghdr*>(message.data());
            if (head.nlmsg_seq != sequence) return true;  // Left over from a failed call.
            if ((head.nlmsg_flags & NLM_F_DUMP_INTR) != 0) answer.interrupted = true;
            if (auto verdict = parse_netlink_verdict(message)) {
                answer.verdict = std::move(*verdict);
                finished = true;
                return false;
            }
            if (head.nlmsg_type == NLMSG_ERROR || head.nlmsg_type == NLMSG_DONE) malformed = true;
            if (malformed) return false;
            if (head.nlmsg_type < NLMSG_MIN_TYPE) return true;
            answer.data.insert(answer.data.end(), message.begin(), message.end());
            answer.data.resize(MNL_ALIGN(answer.data.size()));
            return true;
        });
        if (!whole || malformed)
            return Error(ErrorCode::protocol, std::string(what) + ": malformed answer");
    }
    return answer;
}

Result<std::vector<std::uint8_t>> NetlinkSocket::exchange(NetlinkMessage& message,
                                                          std::string_view what) {
    if (!message.valid())
        return Error(ErrorCode::invalid_argument, std::string(what) + ": values are too long");
    auto& head = message.head();
    head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    head.nlmsg_pid = port_;
    for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
        head.nlmsg_seq = ++sequence_;
        if (auto sent = send(message.bytes(), what); !sent) return sent.error();
        auto answer = collect(head.nlmsg_seq, what);
        if (!answer) return answer.error();
        if (answer->verdict.error != 0) return netlink_error(answer->verdict, what);
        if (!answer->interrupted) return std::move(answer->data);
    }
    return Error(ErrorCode::unavailable,
                 std::string(what) + ": changes keep interrupting the list");
}

Result<std::vector<NetlinkVerdict>> NetlinkSocket::transact(NetlinkBytes datagram,
                                                            std::string_view what) {
    make_room(datagram.size());
    if (auto sent = send(datagram, what); !sent) return sent.error();
    std::vector<NetlinkVerdict> verdicts;
    for (;;) {
        auto answer = receive(MSG_DONTWAIT, what);
        if (!answer) return answer.error();
        if (answer->empty()) return verdicts;
        const bool whole = split_netlink_datagram(*answer, [&](NetlinkBytes message) {
            if (auto verdict = parse_netlink_verdict(message))
                verdicts.push_back(std::move(*verdict));
            return true;
        });
        if (!whole) return Error(ErrorCode::protocol, std::string(what) + ": malformed answer");
    }
}

}  // namespace opensandbox::net
