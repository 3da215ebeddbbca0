#pragma once

#include "net/route_socket.hpp"
#include "support/network_namespace.hpp"

#include <string>

/// Links between network namespaces of a test's own.
namespace opensandbox::test {

inline net::IpAddress ip(const std::string& text) {
    return boost::asio::ip::make_address(text);
}

inline net::RouteSocket routes_of(const TestNamespace& place) {
    return place.run([] { return net::RouteSocket::open().value(); });
}

/// One end of a pair, which its namespace already has.
struct VethEnd {
    VethEnd(const TestNamespace& where, std::string link) : place(&where), name(std::move(link)) {}

    const TestNamespace* place;
    std::string name;
    net::MacAddress mac{};

    [[nodiscard]] int index() const { return routes_of(*place).link_index(name).value(); }
    void add_address(const std::string& address, unsigned prefix) const {
        routes_of(*place).add_address(index(), ip(address), prefix).value();
    }
    /// Reached directly; `source` is what the namespace itself sends from.
    void add_route(const std::string& to, unsigned prefix, const std::string& source = {}) const {
        net::Route route{.destination = ip(to), .prefix = prefix, .link = index()};
        if (!source.empty()) route.source = ip(source);
        routes_of(*place).add_route(route).value();
    }
    void add_default_route(const std::string& gateway) const {
        routes_of(*place).add_default_route(index(), ip(gateway)).value();
    }
    void add_neighbour(const std::string& address, const net::MacAddress& of) const {
        routes_of(*place).add_neighbour(index(), ip(address), of).value();
    }
};

/// A pair of virtual Ethernet ends, both up. Vanishes with either namespace.
struct Veth {
    Veth(const VethEnd& one, const VethEnd& other, std::uint8_t number) : a(one), b(other) {
        a.mac = {0x02, 0xfe, 0, 0, number, 1};
        b.mac = {0x02, 0xfe, 0, 0, number, 2};
        for (const auto* end : {&a, &b})
            end->place->write_sysctl("net/ipv6/conf/default/accept_dad", "0");
        auto here = routes_of(*a.place);
        here.create_veth(
                {a.name, a.mac, b.name, b.mac, net::NetworkNamespace::of_descriptor(b.place->fd())})
            .value();
        routes_of(*b.place).set_up(b.index()).value();
    }

    VethEnd a;
    VethEnd b;
};

inline void raise_loopback(const TestNamespace& place) {
    auto routes = routes_of(place);
    routes.set_up(routes.link_index("lo").value()).value();
}

}  // namespace opensandbox::test
