#include "net/route_socket.hpp"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace opensandbox::net {

namespace {

/// What the kernel takes as a link's name (dev_valid_name), less what would confuse people.
Status check_name(std::string_view name) {
    const bool bad_byte = std::ranges::any_of(
        name, [](char c) { return c <= ' ' || c > '~' || c == '/' || c == ':' || c == '%'; });
    if (name.empty() || name.size() >= IFNAMSIZ || bad_byte || name == "." || name == "..")
        return Error(ErrorCode::invalid_argument,
                     "link name \"" + std::string(name) +
                         "\": must be 1 to 15 printable characters other than / : %");
    return {};
}

std::string link_number(int link) {
    return "link " + std::to_string(link);
}

/// Only the attributes that name and list links need; statistics would treble the answer.
void ask_link(NetlinkMessage& message) {
    message.header<ifinfomsg>().ifi_family = AF_UNSPEC;
    message.put_u32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
}

std::vector<Link> parse_links(NetlinkBytes answer) {
    std::vector<Link> links;
    split_netlink_datagram(answer, [&](NetlinkBytes message) {
        if (auto link = parse_link(message)) links.push_back(std::move(*link));
        return true;
    });
    return links;
}

}  // namespace

std::optional<Link> parse_link(NetlinkBytes message) {
    constexpr auto kAttributes = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(ifinfomsg));
    if (message.size() < kAttributes) return std::nullopt;
    nlmsghdr head;
    ifinfomsg body;
    std::memcpy(&head, message.data(), sizeof(head));
    std::memcpy(&body, message.data() + NLMSG_HDRLEN, sizeof(body));
    const auto name = find_netlink_attribute(message.subspan(kAttributes), IFLA_IFNAME);
    if (head.nlmsg_type != RTM_NEWLINK || body.ifi_index <= 0 || !name) return std::nullopt;
    return Link{body.ifi_index, netlink_text(*name, IFNAMSIZ - 1)};
}

std::optional<IpAddress> route_source(NetlinkBytes message) {
    constexpr auto kAttributes = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(rtmsg));
    if (message.size() < kAttributes) return std::nullopt;
    nlmsghdr head;
    rtmsg body;
    std::memcpy(&head, message.data(), sizeof(head));
    std::memcpy(&body, message.data() + NLMSG_HDRLEN, sizeof(body));
    if (head.nlmsg_type != RTM_NEWROUTE || body.rtm_table != RT_TABLE_MAIN) return std::nullopt;
    const auto source = find_netlink_attribute(message.subspan(kAttributes), RTA_PREFSRC);
    if (!source) return std::nullopt;
    if (body.rtm_family == AF_INET && source->size() == 4) {
        Ipv4Address::bytes_type bytes;
        std::ranges::copy(*source, bytes.begin());
        return IpAddress(Ipv4Address(bytes));
    }
    if (body.rtm_family == AF_INET6 && source->size() == 16) {
        boost::asio::ip::address_v6::bytes_type bytes;
        std::ranges::copy(*source, bytes.begin());
        return IpAddress(boost::asio::ip::address_v6(bytes));
    }
    return std::nullopt;
}

Result<RouteSocket> RouteSocket::open() {
    auto socket = NetlinkSocket::open(NETLINK_ROUTE);
    if (!socket) return socket.error();
    return RouteSocket(std::move(*socket));
}

Status RouteSocket::change(NetlinkMessage& message, std::string_view what) {
    auto answer = socket_.exchange(message, what);
    if (!answer) return answer.error();
    return {};
}

Result<int> RouteSocket::create_veth(const VethPair& pair) {
    const auto what = "create veth " + pair.host_name + " with peer " + pair.peer_name;
    for (const auto& name : {pair.host_name, pair.peer_name})
        if (auto checked = check_name(name); !checked) return checked.error().within(what);

    NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    auto& link = message.header<ifinfomsg>();
    link.ifi_flags = link.ifi_change = IFF_UP;
    message.put_text(IFLA_IFNAME, pair.host_name)
        .put(IFLA_ADDRESS, pair.host_mac)
        .put_u32(IFLA_MTU, pair.mtu);
    const auto info = message.begin(IFLA_LINKINFO);
    message.put_text(IFLA_INFO_KIND, "veth");
    const auto data = message.begin(IFLA_INFO_DATA);
    const auto peer = message.begin(VETH_INFO_PEER);
    message.header<ifinfomsg>();  // All zero: a peer raised from here fails with ENOTCONN.
    message.put_text(IFLA_IFNAME, pair.peer_name)
        .put(IFLA_ADDRESS, pair.peer_mac)
        .put_u32(IFLA_MTU, pair.mtu)
        .put_u32(pair.peer_namespace.by_descriptor() ? IFLA_NET_NS_FD : IFLA_NET_NS_PID,
                 static_cast<std::uint32_t>(pair.peer_namespace.value()));
    message.end(peer).end(data).end(info);

    if (auto created = change(message, what); !created) return created.error();
    auto index = link_index(pair.host_name);
    if (!index) return index.error().within(what);
    return index;
}

Result<int> RouteSocket::link_index(std::string_view name) {
    const auto what = "find link " + std::string(name);
    if (auto checked = check_name(name); !checked) return checked.error();
    // Unlike the message that describes a link, this waits for nobody who is changing one.
    ifreq request{};
    std::ranges::copy(name, request.ifr_name);
    if (::ioctl(socket_.descriptor(), SIOCGIFINDEX, &request) < 0)
        return netlink_error({.error = errno}, what);
    return request.ifr_ifindex;
}

Result<std::vector<Link>> RouteSocket::list_links(std::string_view prefix) {
    NetlinkMessage message(RTM_GETLINK, NLM_F_DUMP);
    ask_link(message);
    auto answer = socket_.exchange(message, "list links");
    if (!answer) return answer.error();
    auto links = parse_links(*answer);
    std::erase_if(links, [&](const Link& link) { return !link.name.starts_with(prefix); });
    return links;
}

Result<bool> RouteSocket::sends_from(const IpAddress& address) {
    const bool six = address.is_v6();
    NetlinkMessage message(RTM_GETROUTE, NLM_F_DUMP);
    message.header<rtmsg>().rtm_family = six ? AF_INET6 : AF_INET;
    auto answer = socket_.exchange(message, "list routes");
    if (!answer) return answer.error();
    bool found = false;
    split_netlink_datagram(*answer, [&](NetlinkBytes bytes) {
        found = route_source(bytes) == address;
        return !found;
    });
    return found;
}

Status RouteSocket::set_up(int link) {
    return apply(RouteChanges().set_up(link));
}

Status RouteSocket::set_down(int link) {
    NetlinkMessage message(RTM_NEWLINK, 0);
    auto& header = message.header<ifinfomsg>();
    header.ifi_index = link;
    header.ifi_change = IFF_UP;
    return change(message, "set " + link_number(link) + " down");
}

Status RouteSocket::limit_rate(int link, std::uint64_t bytes_per_second) {
    constexpr std::uint64_t kBurstsInSecond = 50;
    constexpr std::uint64_t kQueuesInSecond = 20;
    constexpr std::uint64_t kLeastBurst = 16 << 10;
    constexpr std::uint64_t kMost = UINT32_MAX;
    const auto burst = std::clamp(bytes_per_second / kBurstsInSecond, kLeastBurst, kMost / 4);
    NetlinkMessage message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE);
    auto& header = message.header<tcmsg>();
    header.tcm_family = AF_UNSPEC;
    header.tcm_ifindex = link;
    header.tcm_parent = TC_H_ROOT;
    header.tcm_handle = TC_H_MAKE(1U << 16, 0);
    message.put_text(TCA_KIND, "tbf");
    const auto options = message.begin(TCA_OPTIONS);
    tc_tbf_qopt parameters{};
    parameters.rate.rate = static_cast<std::uint32_t>(std::min(bytes_per_second, kMost));
    // Told, so that the kernel needs no table of times.
    parameters.rate.linklayer = TC_LINKLAYER_ETHERNET;
    parameters.limit =
        static_cast<std::uint32_t>(std::min(burst + bytes_per_second / kQueuesInSecond, kMost));
    message.put(TCA_TBF_PARMS,
                {reinterpret_cast<const std::uint8_t*>(&parameters), sizeof(parameters)});
    if (bytes_per_second >= kMost) {
        message.put(TCA_TBF_RATE64, {reinterpret_cast<const std::uint8_t*>(&bytes_per_second),
                                     sizeof(bytes_per_second)});
    }
    message.put_u32(TCA_TBF_BURST, static_cast<std::uint32_t>(burst)).end(options);
    auto limited = change(message, "limit the rate of " + link_number(link));
    if (!limited && limited.error().code() == ErrorCode::not_found) {
        return Error(ErrorCode::unsupported, limited.error().message());
    }
    return limited;
}

Status RouteSocket::delete_link(int link) {
    // Index 0 would leave the choice to the kernel.
    if (link <= 0) return Error(ErrorCode::invalid_argument, "delete link: no such index");
    NetlinkMessage message(RTM_DELLINK, 0);
    message.header<ifinfomsg>().ifi_index = link;
    auto deleted = change(message, "delete " + link_number(link));
    if (!deleted && deleted.error().code() == ErrorCode::not_found) return {};
    return deleted;
}

Status RouteSocket::delete_link(std::string_view name) {
    if (auto checked = check_name(name); !checked) return checked.error();
    NetlinkMessage message(RTM_DELLINK, 0);
    message.header<ifinfomsg>();
    message.put_text(IFLA_IFNAME, name);
    auto deleted = change(message, "delete link " + std::string(name));
    if (!deleted && deleted.error().code() == ErrorCode::not_found) return {};
    return deleted;
}

Status RouteSocket::apply(const RouteChanges& changes) {
    if (changes.failed_) return *changes.failed_;
    if (changes.steps_.empty()) return {};
    auto verdicts = socket_.transact(changes.datagram_, changes.steps_.front());
    if (!verdicts) return verdicts.error();
    bool acknowledged = false;
    for (const NetlinkVerdict& verdict : *verdicts) {
        if (verdict.sequence == 0 || verdict.sequence > changes.steps_.size()) continue;
        if (verdict.error != 0) return netlink_error(verdict, changes.steps_[verdict.sequence - 1]);
        acknowledged = acknowledged || verdict.sequence == changes.steps_.size();
    }
    if (!acknowledged)
        return Error(ErrorCode::protocol, changes.steps_.back() + ": no answer of the kernel");
    return {};
}

Status RouteSocket::add_address(int link, const IpAddress& address, unsigned prefix) {
    return apply(RouteChanges().add_address(link, address, prefix));
}

Status RouteSocket::delete_address(int link, const IpAddress& address, unsigned prefix) {
    auto deleted = apply(RouteChanges().delete_address(link, address, prefix));
    if (!deleted && deleted.error().code() == ErrorCode::not_found) return {};
    return deleted;
}

Status RouteSocket::add_route(const Route& route) {
    return apply(RouteChanges().add_route(route));
}

Status RouteSocket::add_default_route(int link, const IpAddress& gateway) {
    return apply(RouteChanges().add_default_route(link, gateway));
}

Status RouteSocket::add_neighbour(int link, const IpAddress& address, const MacAddress& mac) {
    return apply(RouteChanges().add_neighbour(link, address, mac));
}

}  // namespace opensandbox::net
