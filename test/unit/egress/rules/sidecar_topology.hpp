#pragma once

#include "egress/rules/sidecar_table.hpp"
#include "support/ip_probe.hpp"
#include "support/veth.hpp"
#include "unit/egress/rules/test_policies.hpp"

#include <string>

/// A sandbox's own namespace, with a link to an outside, of both families:
///
///     box 172.30.0.2 fd30::2 eth0 --- eth0 172.30.0.1 fd30::1 outside 192.0.2.2, fd78::2, ...
namespace opensandbox::test {

struct SidecarTopology {
    TestNamespace box;
    TestNamespace outside;
    bool prepared = prepare();
    Veth pair{VethEnd(box, "eth0"), VethEnd(outside, "eth0"), 7};

    SidecarTopology() {
        pair.a.add_address("172.30.0.2", 24);
        pair.a.add_address("fd30::2", 64);
        pair.a.add_route("fd30::", 64);
        pair.b.add_address("172.30.0.1", 24);
        pair.b.add_address("fd30::1", 64);
        pair.b.add_route("fd30::", 64);
        pair.a.add_default_route("172.30.0.1");
        pair.a.add_default_route("fd30::1");
        add_outside("192.0.2.2");
        add_outside("fd78::2");
        // A link that has just come up may lose its first packets: wait until it carries.
        const Listener v4(outside, "192.0.2.2", 7);
        const Listener v6(outside, "fd78::2", 7);
        if (connect_to(box, "192.0.2.2", 7) != 0) throw std::runtime_error("no connection");
        if (connect_to(box, "fd78::2", 7) != 0) throw std::runtime_error("no IPv6");
    }

    void add_outside(const std::string& address) const {
        auto routes = routes_of(outside);
        routes
            .add_address(routes.link_index("lo").value(), ip(address),
                         ip(address).is_v6() ? 128 : 32)
            .value();
    }

    [[nodiscard]] rules::SidecarOptions options() const {
        rules::SidecarOptions options;
        options.links = {"eth0"};
        options.own.mark = 1;
        options.log = rules::LogLimits(7);
        return options;
    }
    [[nodiscard]] rules::SidecarTable open(const rules::PolicyRules& policy) const {
        return open(policy, options());
    }
    [[nodiscard]] rules::SidecarTable open(const rules::PolicyRules& policy,
                                           const rules::SidecarOptions& options) const {
        return box.run([&] {
            auto table = rules::SidecarTable::open(options, policy);
            if (!table) throw std::runtime_error(table.error().message());
            return std::move(table).value();
        });
    }

  private:
    bool prepare() const {
        raise_loopback(box);
        raise_loopback(outside);
        box.write_sysctl("net/ipv4/icmp_ratelimit", "0");
        box.write_sysctl("net/ipv6/icmp/ratelimit", "0");
        return true;
    }
};

/// The errno of a connection by a socket that carries a mark; 0 when it was made.
inline int connect_marked(const TestNamespace& place, const std::string& address, int port,
                          std::uint32_t mark) {
    return place.run([&] {
        const SocketAddress to(address, port);
        const auto fd = open_socket(to, SOCK_STREAM);
        checked(::setsockopt(fd.get(), SOL_SOCKET, SO_MARK, &mark, sizeof(mark)), "SO_MARK");
        if (::connect(fd.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) return errno;
        wait_for(fd.get(), POLLOUT);
        return connect_state(fd);
    });
}

}  // namespace opensandbox::test
