#include "unit/egress/rules/host_topology.hpp"
#include "unit/egress/rules/raw_frames.hpp"

#include <catch2/catch.hpp>
#include <linux/neighbour.h>

#include <fstream>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::Scope;

namespace {

rules::PolicyRules everything() {
    rules::PolicyRules policy;
    policy.allow_by_default = true;
    policy.refuse_private = false;
    return policy;
}

/// The neighbours that a namespace knows, as it prints them.
std::string neighbours(const TestNamespace& place) {
    return place.run([] {
        std::ifstream table("/proc/thread-self/net/arp");
        return std::string(std::istreambuf_iterator<char>(table), {});
    });
}

}  // namespace

TEST_CASE("packets that name another source are dropped, however they were sent") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), everything(), keep_all));
    must(table.add(net.b.guarded(), everything(), keep_all));
    const auto& pair = net.a.pair;
    const auto frame = [&](const std::string& from, const std::string& to, const char* text) {
        return udp_frame(pair.b.mac, pair.a.mac, from, to, 9000, text);
    };
    const Receiver v4(net.outside, "192.0.2.2", 9000);
    const Receiver v6(net.outside, "fd78::2", 9000);
    std::uint64_t dropped = 0;
    // Another sandbox's, a stranger's, the host's own.
    for (const char* from : {"10.77.0.3", "198.51.100.9", "192.0.2.1", "0.0.0.0", "127.0.0.1"}) {
        REQUIRE(send_frame(pair.b, frame(from, "192.0.2.2", "forged")) == 0);
        ++dropped;
    }
    for (const char* from : {"fd77::3", "2001:db8::9", "fe80::1"}) {
        REQUIRE(send_frame(pair.b, frame(from, "fd78::2", "forged")) == 0);
        ++dropped;
    }
    REQUIRE(send_frame(pair.b, frame(net.a.v4, "192.0.2.2", "honest")) == 0);
    REQUIRE(send_frame(pair.b, frame(net.a.v6, "fd78::2", "honest")) == 0);
    CHECK(v4.next() == "honest");
    CHECK(v6.next() == "honest");
    CHECK(table.spoofed().value() == dropped);
}

TEST_CASE("a process that binds another IPv6 source does not get out") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), everything(), keep_all));
    const Receiver receiver(net.outside, "fd78::2", 9000);
    net.a.place.run([] {
        const SocketAddress source("2001:db8::77", 0);
        const SocketAddress target("fd78::2", 9000);
        const auto fd = open_socket(source, SOCK_DGRAM);
        const int on = 1;
        checked(::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on)), "FREEBIND");
        checked(::bind(fd.get(), source.get(), source.size), "bind");
        checked(static_cast<int>(::sendto(fd.get(), "x", 1, 0, target.get(), target.size)), "send");
    });
    send_datagram(net.a.place, net.a.v6, "fd78::2", 9000, "honest");
    CHECK(receiver.next() == "honest");
    CHECK(table.spoofed().value() == 1);
}

TEST_CASE("raw sockets and marks do not get a sandbox past the host's table") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    const Receiver receiver(net.outside, "192.0.2.2", 9000);
    const auto& pair = net.a.pair;
    for (const std::uint32_t mark : {0U, 1U, 2U})
        for (const bool past_the_queue : {false, true})
            REQUIRE(
                send_frame(pair.b,
                           udp_frame(pair.b.mac, pair.a.mac, net.a.v4, "192.0.2.2", 9000, "raw"),
                           {mark, past_the_queue}) == 0);
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 60s));
    send_datagram(net.a.place, net.a.v4, "192.0.2.2", 9000, "honest");
    CHECK(receiver.next() == "honest");
    CHECK(table.refused(rules::Reason::policy).value() == 6);
}

TEST_CASE("the host learns no neighbour from a sandbox") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), everything(), keep_all));
    const auto& pair = net.a.pair;
    // "10.77.0.99 is at ..." for everybody, as a question, which is what hosts learn from.
    Bytes frame;
    put_bytes(frame, std::array<std::uint8_t, 6>{0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
    put_bytes(frame, pair.b.mac);
    put_number(frame, ETH_P_ARP);
    put_bytes(frame, std::array<std::uint8_t, 8>{0, 1, 8, 0, 6, 4, 0, 1});
    put_bytes(frame, pair.b.mac);
    put_bytes(frame, address_bytes(ip("10.77.0.99")));
    put_bytes(frame, net::MacAddress{});
    put_bytes(frame, address_bytes(ip("10.77.0.1")));
    REQUIRE(send_frame(pair.b, frame) == 0);
    const Receiver receiver(net.outside, "192.0.2.2", 9000);
    send_datagram(net.a.place, net.a.v4, "192.0.2.2", 9000, "later");
    REQUIRE(receiver.next() == "later");
    CHECK(neighbours(net.host).find("10.77.0.99") == std::string::npos);
    // It would have been learned without the table.
    must(table.remove_sandbox("egra"));
    net.host.write_sysctl("net/ipv4/conf/egra/arp_accept", "1");
    REQUIRE(send_frame(pair.b, frame) == 0);
    send_datagram(net.a.place, net.a.v4, "192.0.2.2", 9000, "again");
    REQUIRE(receiver.next() == "again");
    CHECK(neighbours(net.host).find(net.a.v4) != std::string::npos);
}

TEST_CASE("protocols other than TCP, UDP and ICMP do not leave, even to learned addresses") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 60s));
    const int refused = net.a.place.run([] {
        constexpr int kGre = 47;
        const UniqueFd fd(checked(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, kGre), "raw"));
        const SocketAddress target("192.0.2.2", 0);
        checked(::connect(fd.get(), target.get(), target.size), "connect");
        checked(static_cast<int>(::send(fd.get(), "\0\0\x08\0payload", 11, 0)), "send");
        wait_for(fd.get(), POLLERR);
        int error = 0;
        socklen_t size = sizeof(error);
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        return error;
    });
    CHECK(refused == EHOSTUNREACH);
    CHECK(table.refused(rules::Reason::protocol).value() == 1);
}

TEST_CASE("echo requests follow the policy") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    const auto ping = [&] {
        return net.a.place.run([] {
            const UniqueFd fd(
                checked(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP), "raw"));
            const SocketAddress target("192.0.2.2", 0);
            Bytes request{8, 0, 0, 0, 0x12, 0x34, 0, 1};
            const unsigned checksum = internet_checksum(request);
            request[2] = static_cast<std::uint8_t>(checksum >> 8);
            request[3] = static_cast<std::uint8_t>(checksum & 0xff);
            checked(static_cast<int>(::sendto(fd.get(), request.data(), request.size(), 0,
                                              target.get(), target.size)),
                    "send");
            std::uint8_t answer[128];
            if (!wait_for(fd.get(), POLLIN)) return -1;
            checked(static_cast<int>(::recv(fd.get(), answer, sizeof(answer), 0)), "recv");
            return static_cast<int>(answer[20]);  // its type
        });
    };
    constexpr int kEchoReply = 0;
    constexpr int kUnreachable = 3;
    CHECK(ping() == kUnreachable);
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 60s));
    CHECK(ping() == kEchoReply);
}
