#include "net/packet_log.hpp"

#include "base/unique_fd.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

namespace opensandbox::net {

namespace {

using boost::asio::ip::address_v4;
using boost::asio::ip::address_v6;

constexpr std::uint32_t kCopiedBytes = 128;
constexpr std::size_t kLogDatagramLimit = 65536;
constexpr std::size_t kPrefixLimit = 128;
constexpr int kErnelBuffer = 512 * 1024;

constexpr std::uint16_t log_message_type(std::uint16_t type) {
    return static_cast<std::uint16_t>(NFNL_SUBSYS_ULOG << 8 | type);
}

std::uint64_t logged_number(std::optional<NetlinkBytes> bytes) {
    std::uint64_t value = 0;
    if (bytes && bytes->size() <= sizeof(value))
        for (const auto byte : *bytes)
            value = value << 8 | byte;
    return value;
}

std::uint16_t two_bytes(NetlinkBytes bytes, std::size_t at) {
    return at + 2 <= bytes.size() ? static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1])
                                  : std::uint16_t{0};
}

void read_ports(NetlinkBytes transport, LoggedPacket& packet) {
    if (packet.protocol != IPPROTO_TCP && packet.protocol != IPPROTO_UDP &&
        packet.protocol != IPPROTO_SCTP)
        return;
    packet.source_port = two_bytes(transport, 0);
    packet.destination_port = two_bytes(transport, 2);
}

bool read_ipv4(NetlinkBytes bytes, LoggedPacket& packet) {
    constexpr std::size_t kLeast = 20;
    if (bytes.size() < kLeast) return false;
    address_v4::bytes_type source{}, destination{};
    std::ranges::copy(bytes.subspan(12, 4), source.begin());
    std::ranges::copy(bytes.subspan(16, 4), destination.begin());
    packet.source = address_v4(source);
    packet.destination = address_v4(destination);
    packet.protocol = bytes[9];
    const std::size_t header = (bytes[0] & 0xfU) * 4;
    const bool first_fragment = (two_bytes(bytes, 6) & 0x1fffU) == 0;
    if (header >= kLeast && header <= bytes.size() && first_fragment)
        read_ports(bytes.subspan(header), packet);
    return true;
}

/// Skips extension headers; false in a later fragment or when the copy ends.
bool find_transport(NetlinkBytes& rest, std::uint8_t& protocol) {
    while (protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
           protocol == IPPROTO_DSTOPTS || protocol == IPPROTO_FRAGMENT) {
        if (rest.size() < 8) return false;
        const bool fragment = protocol == IPPROTO_FRAGMENT;
        const std::size_t size = fragment ? 8 : (rest[1] + 1U) * 8;
        const bool later = fragment && (two_bytes(rest, 2) & 0xfff8U) != 0;
        protocol = rest[0];
        if (later || size > rest.size()) return false;
        rest = rest.subspan(size);
    }
    return true;
}

bool read_ipv6(NetlinkBytes bytes, LoggedPacket& packet) {
    constexpr std::size_t kHeader = 40;
    if (bytes.size() < kHeader) return false;
    address_v6::bytes_type source{}, destination{};
    std::ranges::copy(bytes.subspan(8, 16), source.begin());
    std::ranges::copy(bytes.subspan(24, 16), destination.begin());
    packet.source = address_v6(source);
    packet.destination = address_v6(destination);
    packet.protocol = bytes[6];
    auto rest = bytes.subspan(kHeader);
    if (find_transport(rest, packet.protocol)) read_ports(rest, packet);
    return true;
}

bool read_packet(NetlinkBytes bytes, LoggedPacket& packet) {
    if (bytes.empty()) return false;
    if (bytes[0] >> 4U == 4) return read_ipv4(bytes, packet);
    if (bytes[0] >> 4U == 6) return read_ipv6(bytes, packet);
    return false;
}

std::chrono::system_clock::time_point read_time(std::optional<NetlinkBytes> bytes) {
    if (!bytes || bytes->size() < 16) return std::chrono::system_clock::now();
    const auto seconds = static_cast<std::int64_t>(logged_number(bytes->first(8)));
    const auto microseconds = static_cast<std::int64_t>(logged_number(bytes->subspan(8, 8)));
    // Of the kernel, but a time beyond what the clock can say must not overflow.
    constexpr std::int64_t kLatest = std::int64_t{1} << 33U;
    return std::chrono::system_clock::time_point(
        std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, kLatest)) +
        std::chrono::microseconds(std::clamp<std::int64_t>(microseconds, 0, 999'999)));
}

}  // namespace

std::optional<LogEntry> parse_log_entry(NetlinkBytes message) {
    const std::size_t begin = MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(nfgenmsg));
    if (message.size() < begin) return std::nullopt;
    nlmsghdr head{};
    std::memcpy(&head, message.data(), sizeof(head));
    if (head.nlmsg_type != log_message_type(NFULNL_MSG_PACKET)) return std::nullopt;
    const auto attributes = message.subspan(begin);
    const auto find = [&](std::uint16_t type) { return find_netlink_attribute(attributes, type); };
    LogEntry entry;
    const auto payload = find(NFULA_PAYLOAD);
    if (!payload || !read_packet(*payload, entry.packet)) return std::nullopt;
    if (const auto prefix = find(NFULA_PREFIX))
        entry.packet.prefix = netlink_text(*prefix, kPrefixLimit);
    entry.packet.time = read_time(find(NFULA_TIMESTAMP));
    entry.incoming_index = static_cast<std::uint32_t>(logged_number(find(NFULA_IFINDEX_INDEV)));
    entry.outgoing_index = static_cast<std::uint32_t>(logged_number(find(NFULA_IFINDEX_OUTDEV)));
    entry.sequence = static_cast<std::uint32_t>(logged_number(find(NFULA_SEQ)));
    return entry;
}

struct PacketLog::State {
    State(asio::any_io_executor executor, UniqueFd socket, UniqueFd asks)
        : descriptor(executor, socket.release()),
          names(std::move(asks)),
          buffer(kLogDatagramLimit) {}

    std::string link_name(std::uint32_t index) const {
        ifreq request{};
        request.ifr_ifindex = static_cast<int>(index);
        if (index == 0 || ::ioctl(names.get(), SIOCGIFNAME, &request) != 0) return {};
        return {request.ifr_name, ::strnlen(request.ifr_name, IFNAMSIZ)};
    }

    void add(LogEntry entry) {
        if (counting) entry.packet.lost = entry.sequence - expected;
        counting = true;
        expected = entry.sequence + 1;
        entry.packet.link = link_name(entry.incoming_index);
        entry.packet.outgoing_link = link_name(entry.outgoing_index);
        waiting.push_back(std::move(entry.packet));
    }

    /// False when there was nothing to read.
    Result<bool> receive() {
        sockaddr_nl sender{};
        socklen_t size = sizeof(sender);
        const auto received = ::recvfrom(descriptor.native_handle(), buffer.data(), buffer.size(),
                                         MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&sender), &size);
        if (received < 0) {
            if (errno == EAGAIN) return false;
            // Entries were lost: the next one's number tells how many.
            if (errno == ENOBUFS || errno == EINTR) return true;
            return Error::from_errno(errno, "read the packet log");
        }
        if (sender.nl_pid != 0) return true;
        split_netlink_datagram(NetlinkBytes(buffer).first(static_cast<std::size_t>(received)),
                               [&](NetlinkBytes message) {
                                   if (auto entry = parse_log_entry(message)) add(*entry);
                                   return true;
                               });
        return true;
    }

    asio::posix::stream_descriptor descriptor;
    UniqueFd names;  ///< asked for names of links, in the namespace of the log
    std::vector<std::uint8_t> buffer;
    std::deque<LoggedPacket> waiting;  ///< of one datagram
    std::uint32_t expected = 0;
    bool counting = false;
    bool closed = false;
};

namespace {

/// Asks the kernel for one thing and waits for its answer.
Status configure(int fd, std::uint16_t group, const std::function<void(NetlinkMessage&)>& what) {
    NetlinkMessage message(log_message_type(NFULNL_MSG_CONFIG), NLM_F_REQUEST | NLM_F_ACK);
    auto& header = message.header<nfgenmsg>();
    header.nfgen_family = AF_UNSPEC;
    header.res_id = htons(group);
    what(message);
    const auto bytes = message.bytes();
    if (::send(fd, bytes.data(), bytes.size(), 0) < 0)
        return Error::from_errno(errno, "open the packet log");
    std::array<std::uint8_t, 4096> buffer{};
    for (;;) {
        const auto received = ::recv(fd, buffer.data(), buffer.size(), 0);
        if (received < 0 && errno == EINTR) continue;
        if (received < 0) return Error::from_errno(errno, "open the packet log");
        std::optional<NetlinkVerdict> verdict;
        split_netlink_datagram(NetlinkBytes(buffer).first(static_cast<std::size_t>(received)),
                               [&](NetlinkBytes part) {
                                   verdict = parse_netlink_verdict(part);
                                   return !verdict;
                               });
        if (!verdict) continue;  // Packets may come before the answer to the last question.
        if (verdict->error == 0) return {};
        if (verdict->error == EPERM || verdict->error == EBUSY)
            return Error(ErrorCode::permission_denied,
                         "group " + std::to_string(group) +
                             " of the packet log has another reader, or CAP_NET_ADMIN is missing");
        if (verdict->error == EINVAL || verdict->error == EOPNOTSUPP)
            return Error(ErrorCode::unsupported, "this kernel offers no packet log (nflog)");
        return Error::from_errno(verdict->error, "open the packet log");
    }
}

Status bind_group(int fd, std::uint16_t group) {
    auto bound = configure(fd, group, [](NetlinkMessage& message) {
        const nfulnl_msg_config_cmd command{NFULNL_CFG_CMD_BIND};
        message.put(NFULA_CFG_CMD,
                    {reinterpret_cast<const std::uint8_t*>(&command), sizeof(command)});
    });
    if (!bound) return bound;
    return configure(fd, group, [](NetlinkMessage& message) {
        nfulnl_msg_config_mode mode{};
        mode.copy_range = htonl(kCopiedBytes);
        mode.copy_mode = NFULNL_COPY_PACKET;
        const std::uint16_t flags = htons(NFULNL_CFG_F_SEQ);
        message.put(NFULA_CFG_MODE, {reinterpret_cast<const std::uint8_t*>(&mode), sizeof(mode)});
        message.put_u32(NFULA_CFG_QTHRESH, htonl(1));
        message.put(NFULA_CFG_FLAGS,
                    {reinterpret_cast<const std::uint8_t*>(&flags), sizeof(flags)});
    });
}

}  // namespace

Result<std::unique_ptr<PacketLog>> PacketLog::open(asio::any_io_executor executor,
                                                   std::uint16_t group) {
    UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    UniqueFd names(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd || !names) return Error::from_errno(errno, "open the packet log");
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
        return Error::from_errno(errno, "open the packet log");
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kErnelBuffer, sizeof(kErnelBuffer));
    if (auto bound = bind_group(fd.get(), group); !bound) return bound.error();
    return std::unique_ptr<PacketLog>(new PacketLog(
        std::make_unique<State>(std::move(executor), std::move(fd), std::move(names))));
}

PacketLog::PacketLog(std::unique_ptr<State> state) : state_(std::move(state)) {}
PacketLog::~PacketLog() = default;

void PacketLog::close() {
    state_->closed = true;
    boost::system::error_code ignored;
    state_->descriptor.cancel(ignored);
}

Awaitable<Result<LoggedPacket>> PacketLog::next() {
    auto& state = *state_;
    while (state.waiting.empty()) {
        if (state.closed) co_return Error(ErrorCode::cancelled, "the packet log is closed");
        const auto received = state.receive();
        if (!received) co_return received.error();
        if (*received) continue;
        boost::system::error_code failed;
        co_await state.descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                             asio::redirect_error(asio::use_awaitable, failed));
        if (failed) co_return Error(ErrorCode::cancelled, "the packet log is closed");
    }
    LoggedPacket packet = std::move(state.waiting.front());
    state.waiting.pop_front();
    co_return packet;
}

}  // namespace opensandbox::net
