#pragma once

#include "egress/rules/host_table.hpp"
#include "support/ip_probe.hpp"
#include "support/veth.hpp"
#include "unit/egress/rules/test_policies.hpp"

#include <memory>
#include <string>
#include <vector>

/// A host with two sandboxes and an outside, all in namespaces of the test's own, of both families:
///
///     a 10.77.0.2 fd77::2 --- egra  host lo 10.77.0.1 fd77::1  out --- 192.0.2.2, fd78::2
///     b 10.77.0.3 fd77::3 --- egrb       192.0.2.1 fd78::1             and whatever else is named
namespace opensandbox::test {

struct EgressSandbox {
    EgressSandbox(const TestNamespace& host, const std::string& name, std::uint8_t number)
        : link(name),
          v4("10.77.0." + std::to_string(number)),
          v6("fd77::" + std::to_string(number)),
          pair(VethEnd(host, name), VethEnd(place, "eth0"), number) {
        raise_loopback(place);
        pair.a.add_route(v4, 32, "10.77.0.1");
        pair.a.add_route(v6, 128, "fd77::1");
        pair.a.add_neighbour(v4, pair.b.mac);
        pair.a.add_neighbour(v6, pair.b.mac);
        pair.b.add_address(v4, 32);
        pair.b.add_address(v6, 128);
        pair.b.add_route("10.77.0.1", 32);
        pair.b.add_route("fd77::1", 128);
        pair.b.add_neighbour("10.77.0.1", pair.a.mac);
        pair.b.add_neighbour("fd77::1", pair.a.mac);
        pair.b.add_default_route("10.77.0.1");
        pair.b.add_default_route("fd77::1");
    }

    [[nodiscard]] rules::GuardedSandbox guarded() const { return {link, {ip(v4), ip(v6)}}; }

    TestNamespace place;
    std::string link;
    std::string v4;
    std::string v6;
    Veth pair;
};

struct EgressTopology {
    TestNamespace host;
    TestNamespace outside;
    bool prepared = prepare();
    EgressSandbox a{host, "egra", 2};
    EgressSandbox b{host, "egrb", 3};

    EgressTopology() {
        Veth uplink(VethEnd(host, "out"), VethEnd(outside, "eth0"), 200);
        uplink.a.add_address("192.0.2.1", 24);
        uplink.a.add_address("fd78::1", 64);
        uplink.a.add_route("fd78::", 64);
        uplink.a.add_default_route("192.0.2.2");
        uplink.a.add_default_route("fd78::2");
        uplink.b.add_address("192.0.2.2", 24);
        uplink.b.add_address("fd78::2", 64);
        uplink.b.add_route("fd78::", 64);
        uplink.b.add_default_route("192.0.2.1");
        uplink.b.add_default_route("fd78::1");
        // A link that has just come up may lose its first packets: wait until all carry.
        const Listener listener(outside, "192.0.2.2", 7);
        const Listener listener6(outside, "fd78::2", 7);
        for (const auto* place : {&a.place, &b.place}) {
            if (connect_to(*place, "192.0.2.2", 7) != 0) throw std::runtime_error("no connection");
            if (connect_to(*place, "fd78::2", 7) != 0) throw std::runtime_error("no IPv6");
        }
    }

    /// Another address of the outside.
    void add_outside(const std::string& address) const {
        auto routes = routes_of(outside);
        routes
            .add_address(routes.link_index("lo").value(), ip(address),
                         ip(address).is_v6() ? 128 : 32)
            .value();
    }

    [[nodiscard]] rules::HostOptions options() const {
        rules::HostOptions options("egress_test");
        options.gateway4 = ip("10.77.0.1").to_v4();
        options.gateway6 = ip("fd77::1").to_v6();
        options.dns_port = 5353;
        options.interceptor_port = 8443;
        options.log = rules::LogLimits(7);
        return options;
    }
    [[nodiscard]] rules::HostTable open() const { return open(options()); }
    [[nodiscard]] rules::HostTable open(const rules::HostOptions& options) const {
        return host.run([&] {
            auto table = rules::HostTable::open(options);
            INFO((table ? "" : table.error().message()));
            return std::move(table).value();
        });
    }

  private:
    bool prepare() const {
        raise_loopback(outside);
        raise_loopback(host);
        for (const char* name : {"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"})
            host.write_sysctl(name, "1");
        // Forged sources shall fall to the rules, not to the kernel's own filter.
        host.write_sysctl("net/ipv4/conf/all/rp_filter", "0");
        host.write_sysctl("net/ipv4/conf/default/rp_filter", "0");
        // Refusals are not to be held back, or tests could not count on each.
        host.write_sysctl("net/ipv4/icmp_ratelimit", "0");
        host.write_sysctl("net/ipv6/icmp/ratelimit", "0");
        auto routes = routes_of(host);
        const int lo = routes.link_index("lo").value();
        routes.add_address(lo, ip("10.77.0.1"), 32).value();
        routes.add_address(lo, ip("fd77::1"), 128).value();
        return true;
    }
};

}  // namespace opensandbox::test
