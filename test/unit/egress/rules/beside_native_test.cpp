#include "runtime/native/network/firewall.hpp"
#include "unit/egress/rules/host_topology.hpp"
#include "unit/egress/rules/open_connection.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::Scope;

namespace {

/// As the native runtime makes it, but for who knows of egress control.
void install_native(const EgressTopology& net, std::vector<std::uint16_t> egress_ports) {
    net.host.run([&] {
        runtime::native::FirewallOptions options(
            "native_test", net::Ipv4Range::parse("10.77.0.0/16").value(), "egr");
        options.range6 = net::Ipv6Range::parse("fd77::/64").value();
        options.resolver_port = 5300;
        options.egress_ports = std::move(egress_ports);
        runtime::native::install_firewall(options).value();
    });
}

}  // namespace

TEST_CASE("beside the native runtime's table both hold: what one refuses, the other cannot allow") {
    EgressTopology net;
    net.add_outside("169.254.169.254");
    auto table = net.open();
    install_native(net, {5353, 8443});
    auto policy = names_only();
    policy.allowed = {allow("169.254.169.254", 32), allow("10.77.0.3", 32)};
    must(table.add(net.a.guarded(), policy, keep_all));
    must(table.learn("egra", "x.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 300s));

    const Listener v4(net.outside, "192.0.2.2", 8000);
    const Listener v6(net.outside, "fd78::2", 8000);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
    CHECK(v4.accept_peer() == "192.0.2.1");  // Masqueraded, as before.
    CHECK(connect_to(net.a.place, "fd78::2", 8000) == 0);
    CHECK(v6.accept_peer() == "fd78::1");
    CHECK(connect_to(net.a.place, "192.0.2.7", 8000) == ECONNREFUSED);
    const Listener metadata(net.outside, "169.254.169.254", 80);
    CHECK(connect_to(net.a.place, "169.254.169.254", 80) == ECONNREFUSED);
    const Listener neighbour(net.b.place, net.b.v4, 8000);
    CHECK(connect_to(net.a.place, net.b.v4, 8000) == ECONNREFUSED);
}

TEST_CASE(
    "beside the native runtime's table, queries of guarded sandboxes go to their own server") {
    EgressTopology net;
    auto table = net.open();
    install_native(net, {5353, 8443});
    auto policy = names_only();
    policy.intercepted_ports = {443};
    must(table.add(net.a.guarded(), policy, keep_all));
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    const Receiver egress(net.host, "10.77.0.1", 5353);
    const Receiver egress6(net.host, "fd77::1", 5353);
    const Receiver resolver(net.host, "10.77.0.1", 5300);
    const Listener interceptor(net.host, "10.77.0.1", 8443);
    // The gateway's own port 53 too, which the runtime's table redirects for the others.
    send_datagram(net.a.place, net.a.v4, "10.77.0.1", 53, "guarded");
    CHECK(egress.next() == "guarded");
    send_datagram(net.a.place, net.a.v6, "2001:db8::53", 53, "guarded");
    CHECK(egress6.next() == "guarded");
    send_datagram(net.b.place, net.b.v4, "10.77.0.1", 53, "not guarded");
    CHECK(resolver.next() == "not guarded");
    CHECK(connect_to(net.a.place, "192.0.2.2", 443) == 0);
    CHECK(interceptor.accept_peer() == net.a.v4);
    for (const auto* place : {&net.a.place, &net.b.place})
        for (const int port : {5353, 5300, 8443})
            CHECK(connect_to(*place, "10.77.0.1", port) == ECONNREFUSED);
}

TEST_CASE("beside the native runtime's table a connection that was cut stays so") {
    EgressTopology net;
    auto table = net.open();
    install_native(net, {5353, 8443});
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    const OpenConnection open(net.a.place, net.outside, "192.0.2.2", 8000);
    REQUIRE(open.carries("before"));
    const auto cut = table.revoke("egra", [](const std::string&, const Scope&) { return false; });
    must(cut);
    CHECK(cut->run().value() == 1);
    open.send_back("from outside");
    CHECK(open.send_error("after") == ECONNRESET);
    // The runtime may install its own anew at any time.
    install_native(net, {5353, 8443});
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == ECONNREFUSED);
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
}
