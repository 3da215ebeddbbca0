#include "unit/runtime/firewall_topology.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::test;
using runtime::native::join_network;
using runtime::native::leave_network;

namespace {

void join(const Topology& net, const Sandbox& who, std::uint32_t network) {
    net.host.run([&] { join_network(table, who.link, network).value(); });
}

void leave(const Topology& net, const Sandbox& who, std::uint32_t network) {
    net.host.run([&] { leave_network(table, who.link, network).value(); });
}

/// As errno values.
std::pair<int, int> between(const Topology& net) {
    const Listener at_a(net.a.place, net.a.address, 8000);
    const Listener at_b(net.b.place, net.b.address, 8000);
    return {connect_to(net.a.place, net.b.address, 8000),
            connect_to(net.b.place, net.a.address, 8000)};
}

using Both = std::pair<int, int>;
const Both refused{ECONNREFUSED, ECONNREFUSED};

}  // namespace

TEST_CASE("members of one network reach each other, and nobody else") {
    Topology net;
    net.install();
    CHECK(between(net) == refused);
    join(net, net.a, 1);
    CHECK(between(net) == refused);
    join(net, net.b, 1);
    CHECK(between(net) == Both{0, 0});
    const Listener on_host(net.host, host_outer, 8000);
    CHECK(connect_to(net.a.place, host_outer, 8000) == ECONNREFUSED);
    const Listener outside(net.outside, outside_address, 8000);
    CHECK(connect_to(net.a.place, outside_address, 8000) == 0);
    leave(net, net.b, 1);
    CHECK(between(net) == refused);
    leave(net, net.b, 1);
}

TEST_CASE("members of different networks do not reach each other") {
    Topology net;
    net.install();
    join(net, net.a, 1);
    join(net, net.b, 2);
    CHECK(between(net) == refused);
}

TEST_CASE("members see each other's own addresses") {
    Topology net;
    net.install();
    join(net, net.a, 1);
    join(net, net.b, 1);
    const Listener at_b(net.b.place, net.b.address, 8000);
    REQUIRE(connect_to(net.a.place, net.b.address, 8000) == 0);
    CHECK(at_b.accept_peer() == net.a.address);
}

TEST_CASE("rules that are installed anew know no members") {
    Topology net;
    net.install();
    join(net, net.a, 1);
    join(net, net.b, 1);
    net.install();
    CHECK(between(net) == refused);
}

TEST_CASE("queries to the gateway reach the resolver, whatever its port, and nothing else there") {
    Topology net;
    net.install(5353);
    const Listener resolver(net.host, gateway, 5353);
    const Listener other(net.host, gateway, 8000);
    CHECK(connect_to(net.a.place, gateway, 53) == 0);
    CHECK(connect_to(net.a.place, gateway, 5353) == 0);
    CHECK(connect_to(net.a.place, gateway, 8000) == ECONNREFUSED);
    // Not on other addresses of the host.
    const Listener elsewhere(net.host, host_outer, 5353);
    const Listener named(net.host, host_outer, 53);
    CHECK(connect_to(net.a.place, host_outer, 5353) == ECONNREFUSED);
    CHECK(connect_to(net.a.place, host_outer, 53) == ECONNREFUSED);
    CHECK(resolver.accept_peer() == net.a.address);
}
