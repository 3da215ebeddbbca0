#include "net/route_changes.hpp"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

namespace opensandbox::net {

namespace {

std::string cidr(const IpAddress& address, unsigned prefix) {
    return address.to_string() + "/" + std::to_string(prefix);
}

std::string link_text(int link) {
    return "link " + std::to_string(link);
}

std::uint8_t family_of(const IpAddress& address) {
    return address.is_v6() ? AF_INET6 : AF_INET;
}

void put_address(NetlinkMessage& message, std::uint16_t type, const IpAddress& address) {
    if (address.is_v6()) {
        const auto bytes = address.to_v6().to_bytes();
        message.put(type, bytes);
    } else {
        const auto bytes = address.to_v4().to_bytes();
        message.put(type, bytes);
    }
}

}  // namespace

void RouteChanges::add(NetlinkMessage& message, std::string what) {
    if (failed_) return;
    if (!message.valid()) {
        failed_ = Error(ErrorCode::invalid_argument, what + ": values are too long");
        return;
    }
    // One acknowledgement is enough: refused messages are answered in any case.
    if (!steps_.empty())
        reinterpret_cast<nlmsghdr*>(datagram_.data() + last_)->nlmsg_flags &=
            static_cast<std::uint16_t>(~NLM_F_ACK);
    steps_.push_back(std::move(what));
    auto& head = message.head();
    head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    head.nlmsg_seq = static_cast<std::uint32_t>(steps_.size());
    const auto bytes = message.bytes();
    last_ = datagram_.size();
    datagram_.insert(datagram_.end(), bytes.begin(), bytes.end());
    datagram_.resize(NLMSG_ALIGN(datagram_.size()));
}

bool RouteChanges::check_prefix(const IpAddress& address, unsigned prefix,
                                const std::string& what) {
    const unsigned most = address.is_v6() ? 128 : 32;
    if (prefix <= most) return true;
    failed_ = Error(ErrorCode::invalid_argument,
                    what + ": the prefix length must be from 0 to " + std::to_string(most));
    return false;
}

RouteChanges& RouteChanges::set_up(int link) {
    NetlinkMessage message(RTM_NEWLINK, 0);
    auto& header = message.header<ifinfomsg>();
    header.ifi_index = link;
    header.ifi_flags = header.ifi_change = IFF_UP;
    add(message, "set " + link_text(link) + " up");
    return *this;
}

RouteChanges& RouteChanges::without_own_addresses(int link) {
    constexpr std::uint8_t kNone = 1;  // IN6_ADDR_GEN_MODE_NONE
    NetlinkMessage message(RTM_NEWLINK, 0);
    message.header<ifinfomsg>().ifi_index = link;
    const auto families = message.begin(IFLA_AF_SPEC);
    const auto ipv6 = message.begin(AF_INET6);
    message.put(IFLA_INET6_ADDR_GEN_MODE, {&kNone, 1});
    message.end(ipv6).end(families);
    add(message, "keep " + link_text(link) + " from making itself addresses");
    return *this;
}

void RouteChanges::change_address(std::uint16_t type, std::uint16_t flags, int link,
                                  const IpAddress& address, unsigned prefix, std::string_view label,
                                  std::string what) {
    if (!check_prefix(address, prefix, what)) return;
    NetlinkMessage message(type, flags);
    auto& header = message.header<ifaddrmsg>();
    header.ifa_family = family_of(address);
    header.ifa_prefixlen = static_cast<std::uint8_t>(prefix);
    header.ifa_scope = address.is_loopback() ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
    header.ifa_index = static_cast<std::uint32_t>(link);
    put_address(message, IFA_LOCAL, address);
    put_address(message, IFA_ADDRESS, address);
    if (!label.empty() && address.is_v4()) message.put_text(IFA_LABEL, label);
    if (address.is_v6()) message.put_u32(IFA_FLAGS, IFA_F_NODAD | IFA_F_NOPREFIXROUTE);
    add(message, std::move(what));
}

RouteChanges& RouteChanges::add_address(int link, const IpAddress& address, unsigned prefix,
                                        std::string_view label) {
    change_address(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, link, address, prefix, label,
                   "add address " + cidr(address, prefix) + " to " + link_text(link));
    return *this;
}

RouteChanges& RouteChanges::delete_address(int link, const IpAddress& address, unsigned prefix) {
    change_address(RTM_DELADDR, 0, link, address, prefix, {},
                   "delete address " + cidr(address, prefix) + " of " + link_text(link));
    return *this;
}

RouteChanges& RouteChanges::add_route(const Route& route) {
    auto what = "add route to " + cidr(route.destination, route.prefix);
    if (route.gateway) what += " through " + route.gateway->to_string();
    what += " over " + link_text(route.link);
    if (!check_prefix(route.destination, route.prefix, what)) return *this;

    NetlinkMessage message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    auto& header = message.header<rtmsg>();
    header.rtm_family = family_of(route.destination);
    header.rtm_dst_len = static_cast<std::uint8_t>(route.prefix);
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_scope = route.gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
    header.rtm_type = RTN_UNICAST;
    if (route.prefix != 0) put_address(message, RTA_DST, route.destination);
    if (route.gateway) put_address(message, RTA_GATEWAY, *route.gateway);
    if (route.source) put_address(message, RTA_PREFSRC, *route.source);
    message.put_u32(RTA_OIF, static_cast<std::uint32_t>(route.link));
    add(message, std::move(what));
    return *this;
}

RouteChanges& RouteChanges::add_default_route(int link, const IpAddress& gateway) {
    const IpAddress any = gateway.is_v6() ? IpAddress(boost::asio::ip::address_v6())
                                          : IpAddress(boost::asio::ip::address_v4());
    return add_route({.destination = any, .prefix = 0, .link = link, .gateway = gateway});
}

RouteChanges& RouteChanges::add_neighbour(int link, const IpAddress& address,
                                          const MacAddress& mac) {
    NetlinkMessage message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
    auto& header = message.header<ndmsg>();
    header.ndm_family = family_of(address);
    header.ndm_ifindex = link;
    header.ndm_state = NUD_PERMANENT;
    put_address(message, NDA_DST, address);
    message.put(NDA_LLADDR, mac);
    add(message, "add neighbour " + address.to_string() + " on " + link_text(link));
    return *this;
}

}  // namespace opensandbox::net
