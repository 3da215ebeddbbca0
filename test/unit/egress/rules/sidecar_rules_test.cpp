#include "unit/egress/rules/open_connection.hpp"
#include "unit/egress/rules/raw_frames.hpp"
#include "unit/egress/rules/sidecar_topology.hpp"

#include <catch2/catch.hpp>
#include <linux/filter.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <tuple>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::Scope;

TEST_CASE("from the sidecar's first moment on, nothing leaves but its own") {
    SidecarTopology net;
    const Listener v4(net.outside, "192.0.2.2", 8000);
    const Listener v6(net.outside, "fd78::2", 8000);
    REQUIRE(connect_to(net.box, "192.0.2.2", 8000) == 0);
    auto table = net.open(names_only());
    CHECK(connect_to(net.box, "192.0.2.2", 8000) == ECONNREFUSED);
    CHECK(connect_to(net.box, "fd78::2", 8000) == ECONNREFUSED);
    CHECK(connect_marked(net.box, "192.0.2.2", 8000, 1) == 0);
    CHECK(connect_marked(net.box, "fd78::2", 8000, 1) == 0);
    CHECK(connect_marked(net.box, "192.0.2.2", 8000, 3) == ECONNREFUSED);
    CHECK(table.refused(rules::Reason::policy).value() == 3);
    // Within the sandbox all is as before, and who comes from outside is answered.
    const Listener inside(net.box, "127.0.0.1", 8000);
    const Listener served(net.box, "172.30.0.2", 8080);
    CHECK(connect_to(net.box, "127.0.0.1", 8000) == 0);
    CHECK(connect_to(net.box, "172.30.0.2", 8080) == 0);
    CHECK(connect_to(net.outside, "172.30.0.2", 8080) == 0);
}

TEST_CASE("within the sandbox learned addresses are open, and revoked ones are cut") {
    SidecarTopology net;
    auto table = net.open(names_only());
    must(table.learn("x.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 300s));
    const OpenConnection v4(net.box, net.outside, "192.0.2.2", 8000);
    const OpenConnection v6(net.box, net.outside, "fd78::2", 8000);
    const OpenDatagrams udp(net.box, net.outside, "192.0.2.2", 9000);
    const Listener upstream(net.outside, "192.0.2.2", 8001);
    REQUIRE(udp.carries("before"));
    REQUIRE(connect_marked(net.box, "192.0.2.2", 8001, 1) == 0);

    const auto cut = table.revoke([](const std::string&, const Scope&) { return false; });
    must(cut);
    CHECK(v4.carries("not yet cut"));
    CHECK(cut->run().value() == 3);  // None of the sidecar's own.
    v4.send_back("from outside");
    std::this_thread::sleep_for(300ms);
    CHECK(v4.send_error("after") == ECONNRESET);
    CHECK(v6.send_error("after") == ECONNRESET);
    CHECK(udp.send_error("after") == EPERM);  // Told by the send itself.
    CHECK(connect_to(net.box, "192.0.2.2", 8000) == ECONNREFUSED);
}

TEST_CASE("within the sandbox queries for names go to the sidecar, but those to exempt servers") {
    SidecarTopology net;
    net.add_outside("192.0.2.53");
    auto options = net.options();
    options.exempt_nameservers = {ip("192.0.2.53")};
    auto table = net.open(names_only(), options);
    // Nobody listens yet: a quick refusal.
    CHECK(connect_to(net.box, "9.9.9.9", 53) == ECONNREFUSED);
    const Receiver v4(net.box, "127.0.0.1", 15353);
    const Receiver v6(net.box, "::1", 15353);
    const Listener tcp(net.box, "127.0.0.1", 15353);
    send_datagram(net.box, "172.30.0.2", "9.9.9.9", 53, "query");
    CHECK(v4.next() == "query");
    send_datagram(net.box, "fd30::2", "2001:db8::53", 53, "query");
    CHECK(v6.next() == "query");
    CHECK(connect_to(net.box, "9.9.9.9", 53) == 0);
    // The sidecar's own queries go out, and those to exempt servers, to no other port.
    const Listener server(net.outside, "192.0.2.2", 53);
    CHECK(connect_marked(net.box, "192.0.2.2", 53, 1) == 0);
    CHECK(server.accept_peer() == "172.30.0.2");
    const Listener exempt(net.outside, "192.0.2.53", 53);
    const Listener other(net.outside, "192.0.2.53", 80);
    CHECK(connect_to(net.box, "192.0.2.53", 53) == 0);
    CHECK(exempt.accept_peer() == "172.30.0.2");
    CHECK(connect_to(net.box, "192.0.2.53", 80) == ECONNREFUSED);
}

TEST_CASE("Docker's resolver answers the sidecar alone, on whichever port") {
    SidecarTopology net;
    auto table = net.open(names_only());
    const Listener resolver(net.box, "127.0.0.11", 41000);
    CHECK(connect_to(net.box, "127.0.0.11", 41000) == ECONNREFUSED);
    CHECK(connect_marked(net.box, "127.0.0.11", 41000, 1) == 0);
}

TEST_CASE("within the sandbox what is to be intercepted goes to the interceptor") {
    SidecarTopology net;
    auto policy = names_only();
    policy.intercepted_ports = {443};
    auto table = net.open(policy);
    must(table.learn("x.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 300s));
    const Listener direct(net.outside, "192.0.2.2", 443);
    CHECK(connect_to(net.box, "192.0.2.2", 443) == ECONNREFUSED);
    const Listener v4(net.box, "127.0.0.1", 18081);
    const Listener v6(net.box, "::1", 18081);
    CHECK(connect_to(net.box, "192.0.2.2", 443) == 0);
    CHECK(v4.accept_peer() == "172.30.0.2");
    CHECK(connect_to(net.box, "fd78::2", 443) == 0);
    CHECK(v6.accept_peer() == "fd30::2");
    CHECK(connect_to(net.box, "9.9.9.9", 443) == ECONNREFUSED);
    const OpenDatagrams quic(net.box, net.outside, "192.0.2.2", 443);
    CHECK(quic.send_error("quic") == EPERM);
    CHECK(connect_marked(net.box, "192.0.2.2", 443, 1) == 0);
    CHECK(direct.accept_peer() == "172.30.0.2");
}

TEST_CASE("raw frames do not get out, whatever mark they carry") {
    SidecarTopology net;
    auto table = net.open(names_only());
    REQUIRE(table.stops_raw_frames());
    const Receiver v4(net.outside, "192.0.2.2", 9000);
    const Receiver v6(net.outside, "fd78::2", 9000);
    const auto& pair = net.pair;
    std::uint64_t sent = 0;
    for (const std::uint32_t mark : {0U, 1U, 2U}) {
        for (const bool past_the_queue : {false, true}) {
            send_frame(pair.a,
                       udp_frame(pair.a.mac, pair.b.mac, "172.30.0.2", "192.0.2.2", 9000, "raw"),
                       {mark, past_the_queue});
            send_frame(pair.a, udp_frame(pair.a.mac, pair.b.mac, "fd30::2", "fd78::2", 9000, "raw"),
                       {mark, past_the_queue});
            sent += 2;
        }
    }
    must(table.learn("x.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 300s));
    send_datagram(net.box, "172.30.0.2", "192.0.2.2", 9000, "honest");
    send_datagram(net.box, "fd30::2", "fd78::2", 9000, "honest");
    CHECK(v4.next() == "honest");
    CHECK(v6.next() == "honest");
    CHECK(table.raw_frames().value() == sent);
}

TEST_CASE("raw frames do not get out by a link that came later either, once it is named") {
    SidecarTopology net;
    auto table = net.open(names_only());
    const Veth second(VethEnd(net.box, "eth1"), VethEnd(net.outside, "eth1"), 9);
    second.b.add_address("203.0.113.1", 24);
    const Receiver receiver(net.outside, "203.0.113.1", 9000);
    const auto send = [&](const std::string& text) {
        send_frame(second.a,
                   udp_frame(second.a.mac, second.b.mac, "203.0.113.2", "203.0.113.1", 9000, text));
    };
    send("not yet");
    CHECK(receiver.next() == "not yet");
    must(net.box.run([&] { return table.set_links({"eth0", "eth1"}); }));
    send("never");
    CHECK(table.raw_frames().value() == 1);
    // By its rules the kernel's own go out there as elsewhere.
    second.a.add_address("203.0.113.2", 24);
    must(table.learn("x.test", {ip("203.0.113.1")}, {Scope()}, 60s));
    send_datagram(net.box, "203.0.113.2", "203.0.113.1", 9000, "honest");
    CHECK(receiver.next() == "honest");
    const auto absent = net.box.run([&] { return table.set_links({"eth7"}); });
    REQUIRE_FALSE(absent);
    CHECK(absent.error().code() == ErrorCode::not_found);
}

TEST_CASE("the mark that lets frames out is not to be seen from within") {
    SidecarTopology net;
    auto table = net.open(names_only());
    must(table.learn("x.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    const auto tap = net.box.run([] {
        UniqueFd fd(checked(
            ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL)), "tap"));
        sock_filter marked[] = {
            {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<__u32>(SKF_AD_OFF + SKF_AD_MARK)},
            {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0},
            {BPF_RET | BPF_K, 0, 0, 0},
            {BPF_RET | BPF_K, 0, 0, 0xffff},
        };
        const sock_fprog program{4, marked};
        checked(::setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
                "filter");
        return fd;
    });
    const Receiver receiver(net.outside, "192.0.2.2", 9000);
    send_datagram(net.box, "172.30.0.2", "192.0.2.2", 9000, "seen");
    REQUIRE(receiver.next() == "seen");
    std::uint8_t byte = 0;
    CHECK(::recv(tap.get(), &byte, 1, 0) == -1);
    // Marks are seen where they are: by the loopback link.
    const Receiver here(net.box, "127.0.0.1", 9001);
    net.box.run([] {
        const SocketAddress to("127.0.0.1", 9001);
        const auto fd = open_socket(to, SOCK_DGRAM);
        const std::uint32_t mark = 5;
        checked(::setsockopt(fd.get(), SOL_SOCKET, SO_MARK, &mark, sizeof(mark)), "SO_MARK");
        checked(static_cast<int>(::sendto(fd.get(), "x", 1, 0, to.get(), to.size)), "send");
    });
    REQUIRE(here.next() == "x");
    CHECK(::recv(tap.get(), &byte, 1, 0) == 1);
}

TEST_CASE("a raw socket of its own ICMPv6 does not pass for the kernel's discovery") {
    SidecarTopology net;
    auto table = net.open(names_only());
    const auto before = table.refused(rules::Reason::policy).value();
    net.box.run([] {
        const UniqueFd fd(
            checked(::socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6), "raw"));
        const SocketAddress to("fd78::2", 0);
        Bytes solicitation{135, 0, 0, 0, 0, 0, 0, 0};
        put_bytes(solicitation, address_bytes(ip("fd78::2")));
        ::sendto(fd.get(), solicitation.data(), solicitation.size(), 0, to.get(), to.size);
    });
    CHECK(table.refused(rules::Reason::policy).value() == before + 1);
    // Without the kernel's there would be no IPv6 at all.
    must(table.learn("x.test", {ip("fd78::2")}, {Scope()}, 300s));
    const Listener listener(net.outside, "fd78::2", 8000);
    CHECK(connect_to(net.box, "fd78::2", 8000) == 0);
}

TEST_CASE("nothing leaves with a source that is not the sandbox's, to wherever it goes") {
    SidecarTopology net;
    auto table = net.open(names_only());
    must(table.learn("x.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 300s));
    const Receiver v4(net.outside, "192.0.2.2", 9000);
    const Receiver v6(net.outside, "fd78::2", 9000);
    const auto send_as = [&](const std::string& source, const std::string& to) {
        return net.box.run([&] {
            const SocketAddress from(source, 0);
            const SocketAddress target(to, 9000);
            const auto family = target.get()->sa_family;
            const UniqueFd fd(checked(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
            const int on = 1;
            const int set =
                family == AF_INET6
                    ? ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on))
                    : ::setsockopt(fd.get(), IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on));
            checked(set, "any source");
            checked(::bind(fd.get(), from.get(), from.size), "bind");
            return ::sendto(fd.get(), "forged", 6, 0, target.get(), target.size) < 0 ? errno : 0;
        });
    };
    CHECK(send_as("198.51.100.9", "192.0.2.2") == EPERM);
    CHECK(send_as("fd99::9", "fd78::2") == EPERM);
    CHECK(table.refused(rules::Reason::source).value() == 2);
    send_datagram(net.box, "172.30.0.2", "192.0.2.2", 9000, "honest");
    send_datagram(net.box, "fd30::2", "fd78::2", 9000, "honest");
    CHECK(v4.next() == "honest");
    CHECK(v6.next() == "honest");
}

namespace {

/// A socket of the sandbox, bound to a port of its own choice.
UniqueFd from_port(const SidecarTopology& net, int type, std::uint16_t kPort, std::uint32_t mark,
                   const std::string& address = "172.30.0.2") {
    return net.box.run([&] {
        const SocketAddress own(address, kPort);
        const int family = ip(address).is_v6() ? AF_INET6 : AF_INET;
        UniqueFd fd(checked(::socket(family, type | SOCK_CLOEXEC, 0), "socket"));
        const int on = 1;
        checked(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "reuse");
        checked(::setsockopt(fd.get(), SOL_SOCKET, SO_MARK, &mark, sizeof(mark)), "SO_MARK");
        checked(::bind(fd.get(), own.get(), own.size), "bind");
        return fd;
    });
}

int connect_from(const UniqueFd& fd, const std::string& address, int kPort) {
    const SocketAddress to(address, kPort);
    return ::connect(fd.get(), to.get(), to.size) == 0 ? 0 : errno;
}

}  // namespace

TEST_CASE("what is left of the sidecar's connections opens nothing for the sandbox") {
    SidecarTopology net;
    auto table = net.open(names_only());
    constexpr std::uint16_t kPort = 40007;

    // A server that resets leaves an entry in connection tracking which takes new ones in.
    UniqueFd listener = net.outside.run([] {
        const SocketAddress at("192.0.2.2", 8000);
        UniqueFd fd(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
        checked(::bind(fd.get(), at.get(), at.size), "bind");
        checked(::listen(fd.get(), 8), "listen");
        return fd;
    });
    {
        const UniqueFd own = from_port(net, SOCK_STREAM, kPort, 1);
        REQUIRE(connect_from(own, "192.0.2.2", 8000) == 0);
        const UniqueFd accepted(checked(::accept(listener.get(), nullptr, nullptr), "accept"));
        const linger now{1, 0};
        checked(::setsockopt(accepted.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now)), "linger");
    }
    const UniqueFd stream = from_port(net, SOCK_STREAM, kPort, 0);
    CHECK(connect_from(stream, "192.0.2.2", 8000) == ECONNREFUSED);

    const UniqueFd receiver = net.outside.run([] {
        const SocketAddress at("192.0.2.2", 9000);
        UniqueFd fd(checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
        checked(::bind(fd.get(), at.get(), at.size), "bind");
        return fd;
    });
    // What comes next there is answered.
    const auto heard = [&] {
        std::array<char, 16> bytes{};
        const SocketAddress answered("172.30.0.2", kPort);
        if (!wait_for(receiver.get(), POLLIN)) return std::string();
        const ssize_t size = ::recv(receiver.get(), bytes.data(), bytes.size(), 0);
        ::sendto(receiver.get(), "answer", 6, 0, answered.get(), answered.size);
        return std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    };
    {
        const UniqueFd own = from_port(net, SOCK_DGRAM, kPort, 1);
        REQUIRE(connect_from(own, "192.0.2.2", 9000) == 0);
        REQUIRE(::send(own.get(), "own", 3, 0) == 3);
        CHECK(heard() == "own");
        REQUIRE(wait_for(own.get(), POLLIN));
    }
    {
        const UniqueFd datagrams = from_port(net, SOCK_DGRAM, kPort, 0);
        REQUIRE(connect_from(datagrams, "192.0.2.2", 9000) == 0);
        (void)::send(datagrams.get(), "tunnel", 6, 0);
    }
    // Both were judged as what begins.
    CHECK(table.refused(rules::Reason::policy).value() == 2);
    // The next that comes is the sidecar's.
    const UniqueFd own = from_port(net, SOCK_DGRAM, kPort, 1);
    REQUIRE(connect_from(own, "192.0.2.2", 9000) == 0);
    REQUIRE(::send(own.get(), "after", 5, 0) == 5);
    CHECK(heard() == "after");
}

TEST_CASE("the sidecar's queries do not follow the redirection of the sandbox's from their port") {
    SidecarTopology net;
    auto table = net.open(names_only());
    constexpr std::uint16_t kPort = 40009;
    const auto family = GENERATE(std::make_tuple("172.30.0.2", "192.0.2.2", "127.0.0.1"),
                                 std::make_tuple("fd30::2", "fd78::2", "::1"));
    const auto& [own, server, here] = family;
    const Receiver proxy(net.box, here, 15353);
    const Receiver upstream(net.outside, server, 53);
    const Listener proxy_streams(net.box, here, 15353);
    const Listener upstream_streams(net.outside, server, 53);
    {
        const UniqueFd query = from_port(net, SOCK_DGRAM, kPort, 0, own);
        REQUIRE(connect_from(query, server, 53) == 0);
        REQUIRE(::send(query.get(), "of the sandbox", 14, 0) == 14);
        CHECK(proxy.next() == "of the sandbox");
        const UniqueFd stream = from_port(net, SOCK_STREAM, kPort, 0, own);
        const linger now{1, 0};
        checked(::setsockopt(stream.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now)), "linger");
        REQUIRE(connect_from(stream, server, 53) == 0);
        CHECK(proxy_streams.accept_peer() == own);
    }
    const UniqueFd query = from_port(net, SOCK_DGRAM, kPort, 1, own);
    REQUIRE(connect_from(query, server, 53) == 0);
    REQUIRE(::send(query.get(), "of the sidecar", 14, 0) == 14);
    CHECK(upstream.next() == "of the sidecar");
    const UniqueFd stream = from_port(net, SOCK_STREAM, kPort, 1, own);
    CHECK(connect_from(stream, server, 53) == 0);
    CHECK(upstream_streams.accept_peer() == own);
}

TEST_CASE("a sandbox's namespace holds no more connections than it may") {
    SidecarTopology net;
    auto options = net.options();
    options.connections = 20;
    rules::PolicyRules policy;
    policy.allow_by_default = true;
    policy.refuse_private = false;
    auto table = net.open(policy, options);
    const Listener listener(net.outside, "192.0.2.2", 8000, 256);
    std::vector<UniqueFd> held;
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
        held.push_back(start_connect(net.box, "192.0.2.2", 8000));
        wait_for(held.back().get(), POLLOUT);
        if (connect_state(held.back()) == ECONNREFUSED) ++refused;
    }
    CHECK(refused >= 40);
    CHECK(refused < 60);
    CHECK(table.refused(rules::Reason::connections).value() == static_cast<unsigned>(refused));
}
