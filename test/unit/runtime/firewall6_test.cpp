#include "unit/runtime/firewall_topology.hpp"

#include <catch2/catch.hpp>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/ip6.h>

#include <algorithm>
#include <fstream>
#include <netpacket/packet.h>

using namespace opensandbox;
using namespace opensandbox::test;

namespace {

const std::string gateway6 = "fd77::1";
const std::string host_outer6 = "fd78::1";
const std::string metadata6 = "fd00:ec2::254";

net::IpAddress address(const std::string& text) {
    return boost::asio::ip::make_address(text);
}

constexpr net::MacAddress kHostMac{0x02, 0xfe, 0, 0, 0, 1};
constexpr net::MacAddress kOwnMac{0x02, 0xfe, 0, 0, 0, 2};

/// The topology with IPv6 as slots have it; a is fd77::2, b is fd77::3.
struct Topology6 : Topology {
    Topology6() {
        host.write_sysctl("net/ipv6/conf/all/forwarding", "1");
        add_ipv6(host, "out", host_outer6);
        add_ipv6(outside, "eth0", outside_ipv6);
        auto there = open_routes(outside);
        there.add_address(there.link_index("lo").value(), address(metadata6), 128).value();
        // Without translation answers find their way, too.
        add_ipv6_default_route(outside, "eth0", host_outer6);
        add_ipv6_default_route(host, "out", outside_ipv6);
        auto here = open_routes(host);
        here.add_address(here.link_index("lo").value(), address(gateway6), 128).value();
        connect(a, "fd77::2");
        connect(b, "fd77::3");
        const Listener listener(host, gateway6, 7);
        for (const auto* place : {&a.place, &b.place})
            if (connect_to(*place, gateway6, 7) != 0) throw std::runtime_error("no connection");
    }

    void connect(const Sandbox& sandbox, const std::string& own) const {
        auto here = open_routes(host);
        const int outer = here.link_index(sandbox.link).value();
        here.apply(net::RouteChanges()
                       .add_route({address(own), 128, outer, std::nullopt, address(gateway6)})
                       .add_neighbour(outer, address(own), kOwnMac))
            .value();
        sandbox.place.write_sysctl("net/ipv6/conf/eth0/disable_ipv6", "0");
        auto there = open_routes(sandbox.place);
        const int inner = there.link_index("eth0").value();
        there
            .apply(net::RouteChanges()
                       .add_address(inner, address(own), 128)
                       .add_neighbour(inner, address(gateway6), kHostMac)
                       .add_route({address(gateway6), 128, inner})
                       .add_default_route(inner, address(gateway6)))
            .value();
    }

    void install6() const {
        runtime::native::FirewallOptions options(
            table, net::Ipv4Range::parse("10.77.0.0/16").value(), "osbt");
        options.range6 = net::Ipv6Range::parse("fd77::/64").value();
        host.run([&] { runtime::native::install_firewall(options).value(); });
    }
};

/// The one's complement sum of ICMPv6 over its pseudo header.
std::uint16_t checksum(const ip6_hdr& ip, const std::string& body) {
    std::string all(reinterpret_cast<const char*>(&ip.ip6_src), 32);
    all += std::string(3, '\0') + static_cast<char>(body.size()) + std::string(3, '\0') +
           static_cast<char>(IPPROTO_ICMPV6) + body;
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i + 1 < all.size(); i += 2)
        sum += static_cast<std::uint32_t>(static_cast<unsigned char>(all[i]) << 8 |
                                          static_cast<unsigned char>(all[i + 1]));
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

/// Puts a packet with an ICMPv6 message on the sandbox's link, past its kernel. `body` has less
/// than 256 bytes, an even number.
void send_icmpv6(const Sandbox& from, const std::string& source, const std::string& target,
                 std::string body) {
    const auto fd = from.place.run([] {
        return UniqueFd(
            checked(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IPV6)), "socket"));
    });
    ip6_hdr ip{};
    ip.ip6_vfc = 0x60;
    ip.ip6_plen = htons(static_cast<std::uint16_t>(body.size()));
    ip.ip6_nxt = IPPROTO_ICMPV6;
    ip.ip6_hlim = 255;
    checked(::inet_pton(AF_INET6, source.c_str(), &ip.ip6_src), "source");
    checked(::inet_pton(AF_INET6, target.c_str(), &ip.ip6_dst), "target");
    const std::uint16_t sum = checksum(ip, body);
    body[2] = static_cast<char>(sum >> 8);
    body[3] = static_cast<char>(sum & 0xff);
    const std::string packet = std::string(reinterpret_cast<const char*>(&ip), sizeof ip) + body;
    sockaddr_ll place{};
    place.sll_family = AF_PACKET;
    place.sll_protocol = htons(ETH_P_IPV6);
    place.sll_ifindex = open_routes(from.place).link_index("eth0").value();
    place.sll_halen = 6;
    std::copy(kHostMac.begin(), kHostMac.end(), place.sll_addr);
    checked(static_cast<int>(::sendto(fd.get(), packet.data(), packet.size(), 0,
                                      reinterpret_cast<sockaddr*>(&place), sizeof place)),
            "send");
}

/// "I am a router for half an hour" (RFC 4861 4.2).
std::string router_advertisement() {
    std::string body(16, '\0');
    body[0] = static_cast<char>(ND_ROUTER_ADVERT);
    body[4] = 64;
    body[6] = 0x07;
    body[7] = 0x08;
    return body;
}

bool has_default_route(const TestNamespace& place, const std::string& link) {
    return place.run([&] {
        std::ifstream file("/proc/thread-self/net/ipv6_route");
        for (std::string line; std::getline(file, line);)
            if (line.starts_with(std::string(32, '0') + " 00 ") && line.ends_with(link))
                return true;
        return false;
    });
}

/// What a program inside would see of each boundary, as errno values.
struct Reach {
    int sandbox, host, gateway, metadata, outside;
};

Reach probe(const Topology6& net) {
    const Listener in_sandbox(net.b.place, "fd77::3", 8000);
    const Listener on_host(net.host, host_outer6, 8000);
    const Listener on_gateway(net.host, gateway6, 8000);
    const Listener metadata(net.outside, metadata6, 80);
    const Listener outside(net.outside, outside_ipv6, 8000);
    const auto& from = net.a.place;
    return {connect_to(from, "fd77::3", 8000), connect_to(from, host_outer6, 8000),
            connect_to(from, gateway6, 8000), connect_to(from, metadata6, 80),
            connect_to(from, outside_ipv6, 8000)};
}

}  // namespace

TEST_CASE("over IPv6 a sandbox reaches the outside and nothing else, and is told so at once") {
    Topology6 net;
    const auto open = probe(net);
    CHECK(open.sandbox == 0);
    CHECK(open.host == 0);
    CHECK(open.gateway == 0);
    CHECK(open.metadata == 0);
    CHECK(open.outside == 0);
    net.install6();
    const auto reach = probe(net);
    CHECK(reach.sandbox == ECONNREFUSED);
    CHECK(reach.host == ECONNREFUSED);
    CHECK(reach.gateway == ECONNREFUSED);
    CHECK(reach.metadata == ECONNREFUSED);
    CHECK(reach.outside == 0);
    CHECK(net.denied() >= 4);
}

TEST_CASE("over IPv6 the outside sees the host's address, not the sandbox's") {
    Topology6 net;
    Listener listener(net.outside, outside_ipv6, 8000);
    REQUIRE(connect_to(net.a.place, outside_ipv6, 8000) == 0);
    CHECK(listener.accept_peer() == "fd77::2");
    net.install6();
    REQUIRE(connect_to(net.a.place, outside_ipv6, 8000) == 0);
    CHECK(listener.accept_peer() == host_outer6);
}

TEST_CASE("over IPv6 the host reaches a sandbox, and nobody outside does") {
    Topology6 net;
    const Listener inside(net.a.place, "fd77::2", 8000);
    REQUIRE(connect_to(net.outside, "fd77::2", 8000) == 0);
    net.install6();
    CHECK(connect_to(net.host, "fd77::2", 8000) == 0);
    const auto attempt = start_connect(net.outside, "fd77::2", 8000);
    net.wait_until_denied(1);
    CHECK(connect_state(attempt) == EINPROGRESS);
}

TEST_CASE("forged IPv6 source addresses are dropped") {
    const auto source = GENERATE(as<std::string>{}, "2001:db8::7", "fd77::3");
    INFO("source " << source);
    Topology6 net;
    auto inside = open_routes(net.a.place);
    inside.add_address(inside.link_index("eth0").value(), address(source), 128).value();
    const Receiver receiver(net.outside, outside_ipv6, 9000);
    send_datagram(net.a.place, source, outside_ipv6, 9000, "unguarded");
    CHECK(receiver.next() == "unguarded");
    net.install6();
    send_datagram(net.a.place, source, outside_ipv6, 9000, "forged");
    net.wait_until_denied(1);
    send_datagram(net.a.place, "fd77::2", outside_ipv6, 9000, "honest");
    CHECK(receiver.next() == "honest");
}

TEST_CASE("members of a network reach each other over IPv6") {
    Topology6 net;
    net.install6();
    const Listener inside(net.b.place, "fd77::3", 8000);
    CHECK(connect_to(net.a.place, "fd77::3", 8000) == ECONNREFUSED);
    for (const auto* link : {"osbta", "osbtb"})
        net.host.run([&] { runtime::native::join_network(table, link, 5).value(); });
    CHECK(connect_to(net.a.place, "fd77::3", 8000) == 0);
}

TEST_CASE("a sandbox cannot make itself the host's router") {
    Topology6 net;
    // A host that believes routers also while it forwards.
    net.host.write_sysctl("net/ipv6/conf/osbta/accept_ra", "2");
    const auto advertise = [&](const std::string& source, const std::string& target) {
        send_icmpv6(net.a, source, target, router_advertisement());
    };
    SECTION("without the rules it could") {
        advertise("fe80::2", "ff02::1");
        for (int waited = 0; !has_default_route(net.host, "osbta"); waited += 5) {
            REQUIRE(waited < kPatienceMs);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
    SECTION("with them it is nobody's") {
        net.install6();
        advertise("fe80::2", "ff02::1");
        net.wait_until_denied(1);
        advertise("fd77::2", gateway6);
        net.wait_until_denied(2);
        CHECK_FALSE(has_default_route(net.host, "osbta"));
    }
}
