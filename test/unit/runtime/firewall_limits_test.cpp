#include "runtime/native/network/firewall.hpp"
#include "unit/runtime/firewall_topology.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::test;
using runtime::native::FirewallOptions;
using runtime::native::install_firewall;

namespace {

constexpr int kMost = 8;

void install_with_limit(const Topology& net) {
    FirewallOptions options(table, net::Ipv4Range::parse("10.77.0.0/16").value(), "osbt");
    options.connections = kMost;
    net.host.run([&] { install_firewall(options).value(); });
}

}  // namespace

TEST_CASE("an address of the range that no sandbox has is not sought outside") {
    Topology net;
    const std::string nobodys = "10.77.0.9";
    auto there = open_routes(net.outside);
    there.add_address(there.link_index("lo").value(), ipv4(nobodys), 32).value();
    const Listener impostor(net.outside, nobodys, 8000);
    REQUIRE(connect_to(net.a.place, nobodys, 8000) == 0);
    net.install();
    CHECK(connect_to(net.a.place, nobodys, 8000) == ECONNREFUSED);
    const Listener outside(net.outside, outside_address, 8000);
    CHECK(connect_to(net.a.place, outside_address, 8000) == 0);
}

TEST_CASE("a sandbox with as many connections as it may have begins no other") {
    Topology net;
    install_with_limit(net);
    const Listener listener(net.outside, outside_address, 8000);
    std::vector<UniqueFd> held;
    for (int i = 0; i < kMost; ++i) {
        held.push_back(start_connect(net.a.place, outside_address, 8000));
        while (connect_state(held.back()) == EINPROGRESS)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CHECK(connect_state(held.back()) == 0);
    }
    CHECK(connect_to(net.a.place, outside_address, 8000) == ECONNREFUSED);
    CHECK(connect_to(net.b.place, outside_address, 8000) == 0);
}

TEST_CASE("datagrams of one flow count once, however many come before an answer") {
    Topology net;
    install_with_limit(net);
    const Receiver receiver(net.outside, outside_address, 9000);
    // From one port: a flow that nobody answers.
    const auto denied = net.denied();
    net.a.place.run([&] {
        const SocketAddress to(outside_address, 9000);
        const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        for (int i = 0; i < 20 * kMost; ++i)
            ::sendto(socket.get(), "x", 1, 0, to.get(), to.size);
    });
    CHECK(receiver.next() == "x");
    CHECK(net.denied() == denied);
}
