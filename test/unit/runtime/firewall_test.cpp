#include "runtime/native/network/firewall.hpp"

#include "unit/runtime/firewall_topology.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::test;
using runtime::native::firewall_state;
using runtime::native::FirewallOptions;
using runtime::native::install_firewall;
using runtime::native::remove_firewall;

namespace {

/// What a program inside would see of each boundary, as errno values.
struct Reach {
    int sandbox, host, gateway, metadata, outside;
};

Reach probe(const Topology& net, const Sandbox& from, const Sandbox& other) {
    const Listener in_sandbox(other.place, other.address, 8000);
    const Listener on_host(net.host, host_outer, 8000);
    const Listener on_gateway(net.host, gateway, 8000);
    const Listener metadata(net.outside, metadata_address, 80);
    const Listener outside(net.outside, outside_address, 8000);
    return {connect_to(from.place, other.address, 8000), connect_to(from.place, host_outer, 8000),
            connect_to(from.place, gateway, 8000), connect_to(from.place, metadata_address, 80),
            connect_to(from.place, outside_address, 8000)};
}

}  // namespace

TEST_CASE("without the firewall a sandbox reaches everything, so the other tests can fail") {
    Topology net;
    const auto reach = probe(net, net.a, net.b);
    CHECK(reach.sandbox == 0);
    CHECK(reach.host == 0);
    CHECK(reach.gateway == 0);
    CHECK(reach.metadata == 0);
    CHECK(reach.outside == 0);
}

TEST_CASE("a sandbox reaches the outside and nothing else, and is told so at once") {
    Topology net;
    net.install();
    const auto before = net.denied();
    const auto reach = probe(net, net.a, net.b);
    CHECK(reach.sandbox == ECONNREFUSED);
    CHECK(reach.host == ECONNREFUSED);
    CHECK(reach.gateway == ECONNREFUSED);
    CHECK(reach.metadata == ECONNREFUSED);
    CHECK(reach.outside == 0);
    CHECK(net.denied() >= before + 4);
}

TEST_CASE("the firewall removed, its boundaries are gone with it") {
    Topology net;
    net.install();
    net.host.run([] { return remove_firewall(table).value(); });
    CHECK(probe(net, net.a, net.b).sandbox == 0);
}

TEST_CASE("the outside sees the host's address, not the sandbox's") {
    Topology net;
    Listener listener(net.outside, outside_address, 8000);
    REQUIRE(connect_to(net.a.place, outside_address, 8000) == 0);
    CHECK(listener.accept_peer() == net.a.address);
    net.install();
    REQUIRE(connect_to(net.a.place, outside_address, 8000) == 0);
    CHECK(listener.accept_peer() == host_outer);
}

TEST_CASE("datagrams are refused with an error that names no host address but the gateway's") {
    Topology net;
    net.install();
    for (const auto& target : {metadata_address, std::string("100.100.100.200"), net.b.address}) {
        const auto refusal = datagram_refusal(net.a.place, target, 53);
        INFO(target);
        CHECK(refusal.error == EHOSTUNREACH);
        CHECK(refusal.offender == gateway);
    }
    // One of the host's own addresses answers for itself.
    const auto refusal = datagram_refusal(net.a.place, host_outer, 53);
    CHECK(refusal.error == EHOSTUNREACH);
    CHECK(refusal.offender == host_outer);
}

TEST_CASE("the host reaches a sandbox and gets its answers") {
    Topology net;
    net.install();
    const Listener inside(net.a.place, net.a.address, 8000);
    CHECK(connect_to(net.host, net.a.address, 8000) == 0);
}

TEST_CASE("nobody outside opens a connection to a sandbox") {
    Topology net;
    const Listener inside(net.a.place, net.a.address, 8000);
    REQUIRE(connect_to(net.outside, net.a.address, 8000) == 0);
    net.install();
    const auto attempt = start_connect(net.outside, net.a.address, 8000);
    net.wait_until_denied(1);
    CHECK(connect_state(attempt) == EINPROGRESS);
}

TEST_CASE("forged source addresses are dropped") {
    const std::string foreign = "198.51.100.7";
    const auto source = GENERATE(as<std::string>{}, "198.51.100.7", "10.77.0.3", "10.77.0.1");
    INFO("source " << source);
    Topology net;
    net.a.add_address(source);
    // Even if the host were told that the foreign address is behind this very link.
    auto routes = open_routes(net.host);
    if (source == foreign)
        routes
            .add_route(
                {.destination = ipv4(foreign), .link = routes.link_index(net.a.link).value()})
            .value();
    const Receiver receiver(net.outside, outside_address, 9000);

    send_datagram(net.a.place, source, outside_address, 9000, "unguarded");
    // The gateway's address is the host's own: the kernel itself drops it.
    if (source != gateway) CHECK(receiver.next() == "unguarded");

    net.install();
    send_datagram(net.a.place, source, outside_address, 9000, "forged");
    net.wait_until_denied(1);
    send_datagram(net.a.place, net.a.address, outside_address, 9000, "honest");
    CHECK(receiver.next() == "honest");
}

TEST_CASE("a packet that fits no connection does not get out") {
    Topology net;
    const SegmentTap arrivals(net.outside);
    send_senseless_segment(net.a.place, net.a.address, outside_address, 4000, 4001);
    CHECK(arrivals.next_source_port() == 4000);
    net.install();
    send_senseless_segment(net.a.place, net.a.address, outside_address, 4000, 4001);
    net.wait_until_denied(1);
    CHECK(connect_to(net.a.place, outside_address, 4002) == ECONNREFUSED);
    CHECK(arrivals.next_source_port() != 4000);
}

TEST_CASE("a packet to the host that fits no connection is dropped without an answer") {
    Topology net;
    net.install();
    const SegmentTap answers(net.a.place);
    send_senseless_segment(net.a.place, net.a.address, host_outer, 4000, 4001);
    net.wait_until_denied(1);
    CHECK(connect_to(net.a.place, host_outer, 4002) == ECONNREFUSED);
    CHECK(answers.next_source_port() == 4002);
}

TEST_CASE("IPv6 from a sandbox goes nowhere") {
    Topology net;
    net.enable_ipv6();
    const Receiver on_host(net.host, host_ipv6, 9000);
    const Receiver outside(net.outside, outside_ipv6, 9000);
    const auto send = [&](const std::string& text) {
        send_datagram(net.a.place, sandbox_ipv6, host_ipv6, 9000, text);
        send_datagram(net.a.place, sandbox_ipv6, outside_ipv6, 9000, text);
    };
    // Connections, since they outlast what neighbour discovery and young links may lose.
    const Listener host_listener(net.host, host_ipv6, 8000);
    const Listener outside_listener(net.outside, outside_ipv6, 8000);
    REQUIRE(connect_to(net.a.place, host_ipv6, 8000) == 0);
    REQUIRE(connect_to(net.a.place, outside_ipv6, 8000) == 0);

    net.install();
    send("guarded");
    net.wait_until_denied(2);
    // Whatever came before this on the same link has been judged when it is.
    CHECK(connect_to(net.a.place, host_outer, 8000) == ECONNREFUSED);
    net.host.run([] { return remove_firewall(table).value(); });
    send("unguarded again");
    CHECK(on_host.next() == "unguarded again");
    CHECK(outside.next() == "unguarded again");
}

TEST_CASE("ARP does not tell a sandbox which addresses the host has") {
    Topology net;
    net.install();
    CHECK_FALSE(net.a.resolves_by_arp(host_outer));
    net.host.run([] { return remove_firewall(table).value(); });
    CHECK(net.a.resolves_by_arp(host_outer));
}

TEST_CASE("a port of the host that is handed on to a container stays out of reach") {
    Topology net;
    net.publish_port(8080, outside_address, 8000);
    const Listener container(net.outside, outside_address, 8000);
    REQUIRE(connect_to(net.a.place, host_outer, 8080) == 0);
    net.install();
    CHECK(connect_to(net.a.place, host_outer, 8080) == ECONNREFUSED);
    CHECK(connect_to(net.a.place, outside_address, 8000) == 0);
}

TEST_CASE("traffic that is no sandbox's is untouched") {
    Topology net;
    const Sandbox container(net.host, "cont", "10.88.0.2");
    net.publish_port(8080, outside_address, 8000);
    net.install();
    const Listener on_host(net.host, host_outer, 8000);
    const Listener on_gateway(net.host, gateway, 8001);
    const Listener metadata(net.outside, metadata_address, 80);
    Listener outside(net.outside, outside_address, 8000);
    CHECK(connect_to(net.outside, host_outer, 8000) == 0);
    CHECK(connect_to(net.host, gateway, 8001) == 0);
    CHECK(connect_to(net.host, outside_address, 8000) == 0);
    CHECK(outside.accept_peer() == host_outer);
    CHECK(connect_to(container.place, host_outer, 8000) == 0);
    CHECK(connect_to(container.place, metadata_address, 80) == 0);
    CHECK(connect_to(container.place, host_outer, 8080) == 0);
    CHECK(outside.accept_peer() == container.address);
}

TEST_CASE("installing again replaces the rules and keeps connections") {
    Topology net;
    net.install();
    const auto first = net.host.run([] { return firewall_state(table).value(); });
    Listener listener(net.outside, outside_address, 8000);
    const auto client = start_connect(net.a.place, outside_address, 8000);
    const auto server = listener.accept();
    net.install();
    const auto second = net.host.run([] { return firewall_state(table).value(); });
    CHECK(second.tables == 2);
    CHECK(second.chains == first.chains);
    CHECK(second.rules == first.rules);
    CHECK(echo(client, server, "still here") == "still here");
}

TEST_CASE("two firewalls stand side by side, and removing one leaves the other") {
    Topology net;
    net.install();
    const auto count = [&](const std::string& name) {
        return net.host.run([&] { return firewall_state(name).value().rules; });
    };
    const auto rules = count(table);
    CHECK(rules > 10);
    net.host.run([] {
        return install_firewall(
                   FirewallOptions("second", net::Ipv4Range::parse("10.78.0.0/16").value(), "two"))
            .value();
    });
    CHECK(count("second") == rules);
    net.host.run([] { return remove_firewall(table).value(); });
    CHECK(count(table) == 0);
    CHECK(count("second") == rules);
    net.host.run([] { return remove_firewall("second").value(); });
    CHECK(net.host.run([] { return firewall_state("second").value().tables; }) == 0);
    // Once more: nothing there is no error.
    CHECK(net.host.run([] { return remove_firewall("second").has_value(); }));
}

TEST_CASE("firewall options that would select other links or tables are refused") {
    const auto range = net::Ipv4Range::parse("10.77.0.0/16").value();
    for (const auto* name : {"", "with space", "a-b", "\xc3\xa4"}) {
        INFO("table \"" << name << '"');
        const auto refused = install_firewall(FirewallOptions(name, range, "osbt"));
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code() == ErrorCode::invalid_argument);
    }
    for (const auto* prefix : {"", "fifteen-bytes-x"}) {
        INFO("prefix \"" << prefix << '"');
        const auto refused = install_firewall(FirewallOptions("t", range, prefix));
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code() == ErrorCode::invalid_argument);
    }
}
