#include "net/conntrack.hpp"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace opensandbox::net {

namespace {

using boost::asio::ip::address;

// Which fields of a tuple a filter looks at: of the kernel's nf_conntrack_netlink.c.
constexpr std::uint32_t kFilterSource = 1;
constexpr std::uint32_t kFilterDestination = 2;

constexpr std::uint16_t message_type(std::uint16_t type) {
    return static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | type);
}

/// Version 1: deleting heeds the family and the filter.
NetlinkMessage begin_message(std::uint16_t type, std::uint16_t flags, const address& of) {
    NetlinkMessage message(message_type(type), flags);
    auto& header = message.header<nfgenmsg>();
    header.nfgen_family = of.is_v6() ? AF_INET6 : AF_INET;
    header.version = 1;
    return message;
}

void put_address(NetlinkMessage& message, std::uint16_t v4, std::uint16_t v6,
                 const address& value) {
    if (value.is_v6())
        message.put(v6, value.to_v6().to_bytes());
    else
        message.put(v4, value.to_v4().to_bytes());
}

void put_addresses(NetlinkMessage& message, const address& source,
                   const std::optional<address>& destination) {
    const auto addresses = message.begin(CTA_TUPLE_IP);
    put_address(message, CTA_IP_V4_SRC, CTA_IP_V6_SRC, source);
    if (destination) put_address(message, CTA_IP_V4_DST, CTA_IP_V6_DST, *destination);
    message.end(addresses);
}

void put_port(NetlinkMessage& message, std::uint16_t type, std::uint16_t value) {
    const std::array bytes{static_cast<std::uint8_t>(value >> 8),
                           static_cast<std::uint8_t>(value & 0xff)};
    message.put(type, bytes);
}

void put_byte(NetlinkMessage& message, std::uint16_t type, std::uint8_t value) {
    message.put(type, {&value, 1});
}

void put_protocol(NetlinkMessage& message, const TrackedConnection& connection) {
    const auto protocol = message.begin(CTA_TUPLE_PROTO);
    put_byte(message, CTA_PROTO_NUM, connection.protocol);
    if (connection.protocol == IPPROTO_ICMP) {
        put_port(message, CTA_PROTO_ICMP_ID, connection.icmp_id);
        put_byte(message, CTA_PROTO_ICMP_TYPE, connection.icmp_type);
        put_byte(message, CTA_PROTO_ICMP_CODE, connection.icmp_code);
    } else if (connection.protocol == IPPROTO_ICMPV6) {
        put_port(message, CTA_PROTO_ICMPV6_ID, connection.icmp_id);
        put_byte(message, CTA_PROTO_ICMPV6_TYPE, connection.icmp_type);
        put_byte(message, CTA_PROTO_ICMPV6_CODE, connection.icmp_code);
    } else {
        put_port(message, CTA_PROTO_SRC_PORT, connection.source_port);
        put_port(message, CTA_PROTO_DST_PORT, connection.destination_port);
    }
    message.end(protocol);
}

/// The tuple as a pattern of which only the addresses count.
void put_filter(NetlinkMessage& message, const address& source,
                const std::optional<address>& destination) {
    const auto tuple = message.begin(CTA_TUPLE_ORIG);
    put_addresses(message, source, destination);
    message.end(tuple);
    const auto filter = message.begin(CTA_FILTER);
    message.put_u32(CTA_FILTER_ORIG_FLAGS, kFilterSource | (destination ? kFilterDestination : 0));
    message.put_u32(CTA_FILTER_REPLY_FLAGS, 0);
    message.end(filter);
}

std::uint32_t number(std::optional<NetlinkBytes> bytes) {
    std::uint32_t value = 0;
    if (bytes && bytes->size() <= sizeof(value))
        for (const auto byte : *bytes)
            value = value << 8 | byte;
    return value;
}

template <class Address>
std::optional<address> read_address_as(NetlinkBytes addresses, std::uint16_t type) {
    typename Address::bytes_type value{};
    const auto bytes = find_netlink_attribute(addresses, type);
    if (!bytes || bytes->size() != value.size()) return std::nullopt;
    std::ranges::copy(*bytes, value.begin());
    return address(Address(value));
}

std::optional<address> read_address(NetlinkBytes addresses, std::uint16_t v4, std::uint16_t v6) {
    if (auto found = read_address_as<boost::asio::ip::address_v4>(addresses, v4)) return found;
    return read_address_as<boost::asio::ip::address_v6>(addresses, v6);
}

void read_protocol(NetlinkBytes protocol, TrackedConnection& connection) {
    const auto field = [&](std::uint16_t type) {
        return number(find_netlink_attribute(protocol, type));
    };
    connection.protocol = static_cast<std::uint8_t>(field(CTA_PROTO_NUM));
    connection.source_port = static_cast<std::uint16_t>(field(CTA_PROTO_SRC_PORT));
    connection.destination_port = static_cast<std::uint16_t>(field(CTA_PROTO_DST_PORT));
    const bool v6 = connection.protocol == IPPROTO_ICMPV6;
    connection.icmp_id =
        static_cast<std::uint16_t>(field(v6 ? CTA_PROTO_ICMPV6_ID : CTA_PROTO_ICMP_ID));
    connection.icmp_type =
        static_cast<std::uint8_t>(field(v6 ? CTA_PROTO_ICMPV6_TYPE : CTA_PROTO_ICMP_TYPE));
    connection.icmp_code =
        static_cast<std::uint8_t>(field(v6 ? CTA_PROTO_ICMPV6_CODE : CTA_PROTO_ICMP_CODE));
}

Status done(const Result<std::vector<std::uint8_t>>& answer) {
    if (answer || answer.error().code() == ErrorCode::not_found) return {};
    return answer.error();
}

}  // namespace

std::optional<TrackedConnection> parse_connection(NetlinkBytes message) {
    const std::size_t begin = MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(nfgenmsg));
    if (message.size() < begin) return std::nullopt;
    nlmsghdr head{};
    std::memcpy(&head, message.data(), sizeof(head));
    if (head.nlmsg_type != message_type(IPCTNL_MSG_CT_NEW)) return std::nullopt;
    const auto attributes = message.subspan(begin);
    const auto tuple = find_netlink_attribute(attributes, CTA_TUPLE_ORIG);
    if (!tuple) return std::nullopt;
    const auto addresses = find_netlink_attribute(*tuple, CTA_TUPLE_IP);
    const auto protocol = find_netlink_attribute(*tuple, CTA_TUPLE_PROTO);
    if (!addresses || !protocol) return std::nullopt;
    const auto source = read_address(*addresses, CTA_IP_V4_SRC, CTA_IP_V6_SRC);
    const auto destination = read_address(*addresses, CTA_IP_V4_DST, CTA_IP_V6_DST);
    if (!source || !destination) return std::nullopt;
    TrackedConnection connection;
    connection.source = *source;
    connection.destination = *destination;
    read_protocol(*protocol, connection);
    const auto status = number(find_netlink_attribute(attributes, CTA_STATUS));
    connection.mark = number(find_netlink_attribute(attributes, CTA_MARK));
    connection.destination_translated = (status & IPS_DST_NAT) != 0;
    return connection;
}

Result<ConnectionTracking> ConnectionTracking::open() {
    auto socket = NetlinkSocket::open(NETLINK_NETFILTER);
    if (!socket)
        return Error(ErrorCode::unsupported, "connection tracking: " + socket.error().message());
    return ConnectionTracking(std::move(*socket));
}

Result<std::vector<TrackedConnection>> ConnectionTracking::list(const address& source) {
    auto request = begin_message(IPCTNL_MSG_CT_GET, NLM_F_DUMP, source);
    // Kernels filter by IPv6 addresses the wrong way round: they leave out those that match.
    if (source.is_v4()) put_filter(request, source, std::nullopt);
    return list(request,
                [&](const TrackedConnection& connection) { return connection.source == source; });
}

Result<std::vector<TrackedConnection>> ConnectionTracking::list_marked(std::uint32_t mark) {
    NetlinkMessage request(message_type(IPCTNL_MSG_CT_GET), NLM_F_DUMP);
    request.header<nfgenmsg>().nfgen_family = AF_UNSPEC;
    request.put_u32(CTA_MARK, htonl(mark)).put_u32(CTA_MARK_MASK, 0xffffffffU);
    return list(request,
                [&](const TrackedConnection& connection) { return connection.mark == mark; });
}

Result<std::vector<TrackedConnection>> ConnectionTracking::list(
    NetlinkMessage& request, const std::function<bool(const TrackedConnection&)>& wanted) {
    auto answer = socket_.exchange(request, "list connections");
    if (!answer) return answer.error();
    std::vector<TrackedConnection> connections;
    split_netlink_datagram(*answer, [&](NetlinkBytes message) {
        const auto connection = parse_connection(message);
        if (connection && wanted(*connection)) connections.push_back(*connection);
        return true;
    });
    return connections;
}

Status ConnectionTracking::remove(const TrackedConnection& connection) {
    auto request = begin_message(IPCTNL_MSG_CT_DELETE, 0, connection.source);
    const auto tuple = request.begin(CTA_TUPLE_ORIG);
    put_addresses(request, connection.source, connection.destination);
    put_protocol(request, connection);
    request.end(tuple);
    return done(
        socket_.exchange(request, "delete a connection to " + connection.destination.to_string()));
}

Status ConnectionTracking::remove_all(const address& source,
                                      const std::optional<address>& destination) {
    if (source.is_v6()) {
        const auto connections = list(source);
        if (!connections) return connections.error();
        for (const auto& connection : *connections) {
            if (destination && connection.destination != *destination) continue;
            if (auto removed = remove(connection); !removed) return removed;
        }
        return {};
    }
    auto request = begin_message(IPCTNL_MSG_CT_DELETE, 0, source);
    put_filter(request, source, destination);
    return done(socket_.exchange(request, "delete connections of " + source.to_string()));
}

}  // namespace opensandbox::net
