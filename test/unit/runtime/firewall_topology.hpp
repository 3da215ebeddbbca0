#pragma once

#include "net/netlink_socket.hpp"
#include "net/nftables.hpp"
#include "net/route_socket.hpp"
#include "runtime/native/network/firewall.hpp"
#include "support/ip_probe.hpp"

#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <chrono>
#include <string>
#include <thread>

/// A host with two sandboxes and an outside, all in namespaces of the test's own:
///
///     a 10.77.0.2 --- osbta  host 10.77.0.1  out --- 192.0.2.2 outside
///     b 10.77.0.3 --- osbtb       192.0.2.1          169.254.169.254, fd78::2
namespace opensandbox::test {

inline const std::string table = "opensandbox_test";
inline const std::string gateway = "10.77.0.1";
inline const std::string host_outer = "192.0.2.1";
inline const std::string outside_address = "192.0.2.2";
inline const std::string metadata_address = "169.254.169.254";
inline const std::string host_ipv6 = "fd77::1";
inline const std::string sandbox_ipv6 = "fd77::2";
inline const std::string outside_ipv6 = "fd78::2";

inline net::Ipv4Address ipv4(const std::string& text) {
    return boost::asio::ip::make_address_v4(text);
}

inline net::RouteSocket open_routes(const TestNamespace& place) {
    return place.run([] { return net::RouteSocket::open().value(); });
}

/// Usable at once, without duplicate address detection.
inline void add_ipv6(const TestNamespace& place, const std::string& link, const std::string& text) {
    const int index = open_routes(place).link_index(link).value();
    place.run([&] {
        auto socket = net::NetlinkSocket::open(NETLINK_ROUTE).value();
        net::NetlinkMessage message(RTM_NEWADDR, NLM_F_CREATE);
        auto& header = message.header<ifaddrmsg>();
        header.ifa_family = AF_INET6;
        header.ifa_prefixlen = 64;
        header.ifa_index = static_cast<std::uint32_t>(index);
        const SocketAddress address(text, 0);
        const auto& bytes = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
        message.put(IFA_LOCAL, {bytes.s6_addr, sizeof(bytes)}).put_u32(IFA_FLAGS, IFA_F_NODAD);
        socket.exchange(message, "add IPv6 address").value();
    });
}

inline void add_ipv6_default_route(const TestNamespace& place, const std::string& link,
                                   const std::string& gateway_text) {
    const int index = open_routes(place).link_index(link).value();
    place.run([&] {
        auto socket = net::NetlinkSocket::open(NETLINK_ROUTE).value();
        net::NetlinkMessage message(RTM_NEWROUTE, NLM_F_CREATE);
        auto& header = message.header<rtmsg>();
        header.rtm_family = AF_INET6;
        header.rtm_table = RT_TABLE_MAIN;
        header.rtm_protocol = RTPROT_STATIC;
        header.rtm_type = RTN_UNICAST;
        const SocketAddress address(gateway_text, 0);
        const auto& bytes = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
        message.put(RTA_GATEWAY, {bytes.s6_addr, sizeof(bytes)})
            .put_u32(RTA_OIF, static_cast<std::uint32_t>(index));
        socket.exchange(message, "add IPv6 default route").value();
    });
}

/// A namespace with one address, connected as sandboxes are: point to point, permanent neighbours.
struct Sandbox {
    Sandbox(const TestNamespace& host, std::string name, std::string own)
        : link(std::move(name)), address(std::move(own)) {
        place.write_sysctl("net/ipv6/conf/all/disable_ipv6", "1");
        place.write_sysctl("net/ipv6/conf/default/disable_ipv6", "1");
        place.write_sysctl("net/ipv6/conf/default/accept_dad", "0");
        constexpr net::MacAddress kHostMac{0x02, 0xfe, 0, 0, 0, 1};
        constexpr net::MacAddress kOwnMac{0x02, 0xfe, 0, 0, 0, 2};
        auto there = open_routes(host);
        const int outer = there
                              .create_veth({link, kHostMac, "eth0", kOwnMac,
                                            net::NetworkNamespace::of_descriptor(place.fd())})
                              .value();
        there.add_route({.destination = ipv4(address), .link = outer, .source = ipv4(gateway)})
            .value();
        there.add_neighbour(outer, ipv4(address), kOwnMac).value();

        auto here = open_routes(place);
        const int inner = here.link_index("eth0").value();
        here.set_up(here.link_index("lo").value()).value();
        here.set_up(inner).value();
        here.add_address(inner, ipv4(address), 32).value();
        here.add_neighbour(inner, ipv4(gateway), kHostMac).value();
        here.add_route({.destination = ipv4(gateway), .link = inner}).value();
        here.add_default_route(inner, ipv4(gateway)).value();
    }

    void add_address(const std::string& other) const {
        auto here = open_routes(place);
        here.add_address(here.link_index("lo").value(), ipv4(other), 32).value();
    }

    void enable_ipv6(const TestNamespace& host) const {
        place.write_sysctl("net/ipv6/conf/eth0/disable_ipv6", "0");
        add_ipv6(place, "eth0", sandbox_ipv6);
        add_ipv6(host, link, host_ipv6);
        add_ipv6_default_route(place, "eth0", host_ipv6);
    }

    /// Whether somebody on the link answers for the address.
    [[nodiscard]] bool resolves_by_arp(const std::string& other) const {
        place.write_sysctl("net/ipv4/neigh/eth0/retrans_time_ms", "50");
        auto here = open_routes(place);
        const auto added = here.add_route({.destination = ipv4(other),
                                           .link = here.link_index("eth0").value(),
                                           .source = ipv4(address)});
        if (!added && added.error().code() != ErrorCode::conflict) added.value();
        return connect_to(place, other, 4711) != EHOSTUNREACH;
    }

    TestNamespace place;
    std::string link;
    std::string address;
};

struct Topology {
    TestNamespace host;
    TestNamespace outside;
    bool prepared = prepare_host();
    Sandbox a{host, "osbta", "10.77.0.2"};
    Sandbox b{host, "osbtb", "10.77.0.3"};

    Topology() {
        connect_outside();
        // A link that has just come up may lose its first packets: wait until all three carry.
        const Listener listener(host, host_outer, 7);
        for (const auto* place : {&a.place, &b.place, &outside})
            if (connect_to(*place, host_outer, 7) != 0) throw std::runtime_error("no connection");
    }

    /// Lets the host forward IPv6 between sandbox a and the outside.
    void enable_ipv6() const {
        a.enable_ipv6(host);
        host.write_sysctl("net/ipv6/conf/all/forwarding", "1");
        add_ipv6(host, "out", "fd78::1");
        add_ipv6(outside, "eth0", outside_ipv6);
        add_ipv6_default_route(outside, "eth0", "fd78::1");
    }

    void install(std::uint16_t resolver_port = 0) const {
        runtime::native::FirewallOptions options(
            table, net::Ipv4Range::parse("10.77.0.0/16").value(), "osbt");
        options.resolver_port = resolver_port;
        host.run([&] { runtime::native::install_firewall(options).value(); });
    }

    [[nodiscard]] std::uint64_t denied() const {
        return host.run([] { return runtime::native::firewall_state(table).value(); })
            .denied_packets;
    }

    void wait_until_denied(std::uint64_t packets) const {
        for (int waited = 0; denied() < packets; waited += 5) {
            if (waited > kPatienceMs) throw std::runtime_error("nothing was denied");
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }

    /// Hands a port of the host on to another address, as container engines do.
    void publish_port(int port, const std::string& address, int to) const {
        net::nft::Rule rule;
        rule.is_ipv4().transport(IPPROTO_TCP).destination(ipv4(host_outer), 32);
        translate(rule.native(), port, address, to);
        net::nft::Transaction transaction;
        const auto family = net::nft::Family::inet;
        transaction.add_table(family, "published");
        transaction.add_base_chain(family, "published", "pre", "nat", net::nft::Hook::prerouting,
                                   -100);
        transaction.add_rule(family, "published", "pre", rule);
        auto socket = host.run([] { return net::NetlinkSocket::open(NETLINK_NETFILTER).value(); });
        transaction.commit(socket).value();
    }

  private:
    bool prepare_host() const {
        host.write_sysctl("net/ipv4/ip_forward", "1");
        // Forged sources shall fall to the rules, not to the kernel's own filter.
        host.write_sysctl("net/ipv4/conf/all/rp_filter", "0");
        host.write_sysctl("net/ipv4/conf/default/rp_filter", "0");
        // Or IPv6 addresses would be of use only seconds later.
        host.write_sysctl("net/ipv6/conf/default/accept_dad", "0");
        outside.write_sysctl("net/ipv6/conf/default/accept_dad", "0");
        auto routes = open_routes(host);
        const int lo = routes.link_index("lo").value();
        routes.set_up(lo).value();
        routes.add_address(lo, ipv4(gateway), 32).value();
        return true;
    }

    void connect_outside() const {
        auto here = open_routes(host);
        const int out = here.create_veth({"out",
                                          {0x02, 0xfd, 0, 0, 0, 1},
                                          "eth0",
                                          {0x02, 0xfd, 0, 0, 0, 2},
                                          net::NetworkNamespace::of_descriptor(outside.fd())})
                            .value();
        here.add_address(out, ipv4(host_outer), 24).value();
        auto there = open_routes(outside);
        const int lo = there.link_index("lo").value();
        const int in = there.link_index("eth0").value();
        there.set_up(lo).value();
        there.set_up(in).value();
        there.add_address(lo, ipv4(metadata_address), 32).value();
        there.add_address(in, ipv4(outside_address), 24).value();
        there.add_default_route(in, ipv4(host_outer)).value();
        here.add_default_route(out, ipv4(outside_address)).value();
    }

    static void translate(nftnl_rule* rule, int port, const std::string& address, int to) {
        const auto append = [&](const char* kind) {
            auto* expression = nftnl_expr_alloc(kind);
            nftnl_rule_add_expr(rule, expression);
            return expression;
        };
        const auto wanted = htons(static_cast<std::uint16_t>(port));
        const auto target_port = htons(static_cast<std::uint16_t>(to));
        const auto target = htonl(ipv4(address).to_uint());

        auto* load = append("payload");
        nftnl_expr_set_u32(load, NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_TRANSPORT_HEADER);
        nftnl_expr_set_u32(load, NFTNL_EXPR_PAYLOAD_OFFSET, 2);
        nftnl_expr_set_u32(load, NFTNL_EXPR_PAYLOAD_LEN, 2);
        nftnl_expr_set_u32(load, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
        auto* compare = append("cmp");
        nftnl_expr_set_u32(compare, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
        nftnl_expr_set_u32(compare, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
        nftnl_expr_set(compare, NFTNL_EXPR_CMP_DATA, &wanted, sizeof(wanted));
        auto* address_value = append("immediate");
        nftnl_expr_set_u32(address_value, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
        nftnl_expr_set(address_value, NFTNL_EXPR_IMM_DATA, &target, sizeof(target));
        auto* port_value = append("immediate");
        nftnl_expr_set_u32(port_value, NFTNL_EXPR_IMM_DREG, NFT_REG_2);
        nftnl_expr_set(port_value, NFTNL_EXPR_IMM_DATA, &target_port, sizeof(target_port));
        auto* nat = append("nat");
        nftnl_expr_set_u32(nat, NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT);
        nftnl_expr_set_u32(nat, NFTNL_EXPR_NAT_FAMILY, NFPROTO_IPV4);
        nftnl_expr_set_u32(nat, NFTNL_EXPR_NAT_REG_ADDR_MIN, NFT_REG_1);
        nftnl_expr_set_u32(nat, NFTNL_EXPR_NAT_REG_PROTO_MIN, NFT_REG_2);
    }
};

}  // namespace opensandbox::test
