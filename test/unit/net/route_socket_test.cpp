#include "net/route_socket.hpp"

#include "support/network_namespace.hpp"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

using namespace opensandbox;
using namespace opensandbox::net;
using opensandbox::test::TestNamespace;

namespace {

constexpr MacAddress kHostMac{0x02, 0xfe, 0, 0, 0, 1};
constexpr MacAddress kPeerMac{0x02, 0xfe, 0, 0, 0, 2};

Ipv4Address address(const char* text) {
    return boost::asio::ip::make_address_v4(text);
}

RouteSocket open_in(const TestNamespace& place) {
    return place.run([] { return RouteSocket::open().value(); });
}

/// Two namespaces; `here` and `there` speak to their kernels.
struct Pair {
    TestNamespace host;
    TestNamespace peer;
    RouteSocket here = open_in(host);
    RouteSocket there = open_in(peer);

    [[nodiscard]] VethPair veth(const std::string& name) const {
        return {name, kHostMac, "eth0", kPeerMac, NetworkNamespace::of_descriptor(peer.fd()), 1400};
    }
};

/// What the kernel says about a link through the older ioctl interface.
ifreq ask(const TestNamespace& place, const std::string& link, unsigned long request) {
    return place.run([&] {
        UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ifreq answer{};
        std::strncpy(answer.ifr_name, link.c_str(), IFNAMSIZ - 1);
        if (::ioctl(socket.get(), request, &answer) != 0)
            throw std::system_error(errno, std::generic_category(), "ioctl");
        return answer;
    });
}

bool is_up(const TestNamespace& place, const std::string& link) {
    return (ask(place, link, SIOCGIFFLAGS).ifr_flags & IFF_UP) != 0;
}

std::string mac_of(const TestNamespace& place, const std::string& link) {
    return {ask(place, link, SIOCGIFHWADDR).ifr_hwaddr.sa_data, 6};
}

std::string bytes_of(const MacAddress& mac) {
    return {mac.begin(), mac.end()};
}

/// The source address the kernel would choose towards `to`; empty when there is no route.
std::string source_towards(const TestNamespace& place, const char* to) {
    return place.run([&]() -> std::string {
        UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in target{};
        target.sin_family = AF_INET;
        target.sin_port = htons(9);
        ::inet_pton(AF_INET, to, &target.sin_addr);
        if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&target), sizeof(target)) != 0)
            return {};
        sockaddr_in own{};
        socklen_t length = sizeof(own);
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length);
        char text[INET_ADDRSTRLEN];
        return ::inet_ntop(AF_INET, &own.sin_addr, text, sizeof(text));
    });
}

}  // namespace

TEST_CASE("a veth pair has one end here and up, the other there and down") {
    Pair pair;
    const auto index = pair.here.create_veth(pair.veth("osbt1"));
    REQUIRE(index.has_value());
    CHECK(*index == pair.here.link_index("osbt1").value());
    CHECK(is_up(pair.host, "osbt1"));
    CHECK(mac_of(pair.host, "osbt1") == bytes_of(kHostMac));
    CHECK(ask(pair.host, "osbt1", SIOCGIFMTU).ifr_mtu == 1400);

    CHECK_FALSE(pair.here.link_index("eth0").has_value());
    CHECK(mac_of(pair.peer, "eth0") == bytes_of(kPeerMac));
    CHECK(ask(pair.peer, "eth0", SIOCGIFMTU).ifr_mtu == 1400);
    CHECK_FALSE(is_up(pair.peer, "eth0"));
    REQUIRE(pair.there.set_up(pair.there.link_index("eth0").value()).has_value());
    CHECK(is_up(pair.peer, "eth0"));
}

TEST_CASE("a veth pair that cannot be made says which one and why") {
    Pair pair;
    REQUIRE(pair.here.create_veth(pair.veth("osbt1")).has_value());
    SECTION("the name is taken") {
        auto again = pair.veth("osbt1");
        again.peer_name = "eth1";
        const auto refused = pair.here.create_veth(again);
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code() == ErrorCode::conflict);
        CHECK_THAT(refused.error().message(),
                   Catch::StartsWith("create veth osbt1 with peer eth1: "));
    }
    SECTION("the namespace is no namespace") {
        auto lost = pair.veth("osbt2");
        lost.peer_name = "eth1";
        lost.peer_namespace = NetworkNamespace::of_descriptor(-1);
        const auto refused = pair.here.create_veth(lost);
        REQUIRE_FALSE(refused.has_value());
        CHECK_FALSE(pair.here.link_index("osbt2").has_value());
    }
    SECTION("the name is too long, or none") {
        for (const auto* name : {"a-name-of-16-byt", "", ".", "a/b", "a b"}) {
            const auto refused = pair.here.create_veth(pair.veth(name));
            REQUIRE_FALSE(refused.has_value());
            CHECK(refused.error().code() == ErrorCode::invalid_argument);
        }
    }
}

TEST_CASE("links are listed by the beginning of their name") {
    Pair pair;
    for (const auto* name : {"osbt1", "osbt2", "other"}) {
        auto veth = pair.veth(name);
        veth.peer_name = std::string("p") + name;
        REQUIRE(pair.here.create_veth(veth).has_value());
    }
    const auto links = pair.here.list_links("osbt").value();
    REQUIRE(links.size() == 2);
    CHECK(links[0].name == "osbt1");
    CHECK(links[0].index == pair.here.link_index("osbt1").value());
    CHECK(links[1].name == "osbt2");
    CHECK(pair.here.list_links("").value().size() == 4);  // and lo
    CHECK(pair.here.list_links("absent").value().empty());
}

TEST_CASE("a listing is whole when there are more links than fit one answer") {
    Pair pair;
    for (int i = 0; i < 120; ++i) {
        auto veth = pair.veth("osbt" + std::to_string(i));
        veth.peer_name = "p" + std::to_string(i);
        REQUIRE(pair.here.create_veth(veth).has_value());
    }
    CHECK(pair.here.list_links("osbt").value().size() == 120);
}

TEST_CASE("a deleted link is gone at both ends, and deleting it again succeeds") {
    Pair pair;
    const int index = pair.here.create_veth(pair.veth("osbt1")).value();
    SECTION("by index") {
        REQUIRE(pair.here.delete_link(index).has_value());
        CHECK(pair.here.delete_link(index).has_value());
    }
    SECTION("by name") {
        REQUIRE(pair.here.delete_link("osbt1").has_value());
        CHECK(pair.here.delete_link("osbt1").has_value());
    }
    CHECK(pair.here.list_links("osbt").value().empty());
    CHECK(pair.there.list_links("eth").value().empty());
}

TEST_CASE("an index that names no link is refused before the kernel guesses") {
    Pair pair;
    CHECK(pair.here.delete_link(0).error().code() == ErrorCode::invalid_argument);
    CHECK(pair.here.set_up(4711).error().code() == ErrorCode::not_found);
    CHECK(pair.here.link_index("absent").error().code() == ErrorCode::not_found);
}

TEST_CASE("an address can be added twice and deleted twice") {
    Pair pair;
    const int lo = pair.here.link_index("lo").value();
    REQUIRE(pair.here.set_up(lo).has_value());
    CHECK(source_towards(pair.host, "10.77.0.1").empty());
    REQUIRE(pair.here.add_address(lo, address("10.77.0.1"), 32).has_value());
    CHECK(pair.here.add_address(lo, address("10.77.0.1"), 32).has_value());
    CHECK(source_towards(pair.host, "10.77.0.1") == "10.77.0.1");
    REQUIRE(pair.here.delete_address(lo, address("10.77.0.1"), 32).has_value());
    CHECK(pair.here.delete_address(lo, address("10.77.0.1"), 32).has_value());
    CHECK(source_towards(pair.host, "10.77.0.1").empty());

    const auto refused = pair.here.add_address(lo, address("10.77.0.1"), 33);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("routes decide link and source, and name themselves when refused") {
    Pair pair;
    const int veth = pair.here.create_veth(pair.veth("osbt1")).value();
    const int lo = pair.here.link_index("lo").value();
    REQUIRE(pair.here.set_up(lo).has_value());
    REQUIRE(pair.here.add_address(lo, address("10.99.0.1"), 32).has_value());
    REQUIRE(pair.here.add_address(lo, address("10.77.0.1"), 32).has_value());

    const Route route{
        .destination = address("10.77.0.2"), .link = veth, .source = address("10.77.0.1")};
    REQUIRE(pair.here.add_route(route).has_value());
    CHECK(source_towards(pair.host, "10.77.0.2") == "10.77.0.1");

    SECTION("the same destination twice") {
        const auto refused = pair.here.add_route(route);
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code() == ErrorCode::conflict);
        CHECK_THAT(
            refused.error().message(),
            Catch::StartsWith("add route to 10.77.0.2/32 over link " + std::to_string(veth)));
    }
    SECTION("a default route needs a gateway within reach") {
        const auto refused = pair.here.add_default_route(veth, address("192.0.2.1"));
        REQUIRE_FALSE(refused.has_value());
        CHECK_THAT(refused.error().message(),
                   Catch::StartsWith("add route to 0.0.0.0/0 through 192.0.2.1"));
        // The kernel's own words.
        CHECK_THAT(refused.error().message(), Catch::Contains("Nexthop has invalid gateway"));

        REQUIRE(pair.here.add_default_route(veth, address("10.77.0.2")).has_value());
        CHECK_FALSE(source_towards(pair.host, "198.51.100.1").empty());
    }
    SECTION("a prefix beyond 32 bits") {
        auto odd = route;
        odd.prefix = 33;
        CHECK(pair.here.add_route(odd).error().code() == ErrorCode::invalid_argument);
    }
}

TEST_CASE("a permanent neighbour is never asked for") {
    Pair pair;
    const int veth = pair.here.create_veth(pair.veth("osbt1")).value();
    REQUIRE(pair.here.add_neighbour(veth, address("10.77.0.2"), kPeerMac).has_value());
    CHECK(pair.here.add_neighbour(veth, address("10.77.0.2"), kPeerMac).has_value());
    const auto entry = pair.host.run([] {
        UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        arpreq request{};
        auto& wanted = reinterpret_cast<sockaddr_in&>(request.arp_pa);
        wanted.sin_family = AF_INET;
        ::inet_pton(AF_INET, "10.77.0.2", &wanted.sin_addr);
        std::strcpy(request.arp_dev, "osbt1");
        if (::ioctl(socket.get(), SIOCGARP, &request) != 0)
            throw std::system_error(errno, std::generic_category(), "SIOCGARP");
        return request;
    });
    CHECK((entry.arp_flags & ATF_PERM) != 0);
    CHECK(std::string(entry.arp_ha.sa_data, 6) == bytes_of(kPeerMac));
    CHECK(pair.here.add_neighbour(4711, address("10.77.0.2"), kPeerMac).error().code() ==
          ErrorCode::not_found);
}

TEST_CASE("several changes go to the kernel at once, and the first refused one is told") {
    Pair pair;
    const int veth = pair.here.create_veth(pair.veth("osbt1")).value();
    const int lo = pair.here.link_index("lo").value();
    const IpAddress own = boost::asio::ip::make_address("fd77::1");
    const IpAddress other = boost::asio::ip::make_address("fd77::2");
    const auto changes = [&] {
        return RouteChanges()
            .without_own_addresses(veth)
            .set_up(lo)
            .add_address(lo, own, 128)
            .add_route({other, 128, veth, std::nullopt, own})
            .add_neighbour(veth, other, kPeerMac);
    };
    CHECK_FALSE(pair.here.sends_from(own).value());
    REQUIRE(pair.here.apply(changes()).has_value());
    CHECK(pair.here.sends_from(own).value());
    CHECK_FALSE(pair.here.sends_from(other).value());
    const auto refused = pair.here.apply(changes());
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::conflict);
    CHECK_THAT(refused.error().message(), Catch::StartsWith("add route to fd77::2/128"));
    // Bad values reach nobody.
    const auto wrong = pair.here.apply(RouteChanges().set_up(veth).add_address(lo, own, 129));
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().code() == ErrorCode::invalid_argument);
    // Without the address nothing can be sent from it; deleting twice is no error.
    REQUIRE(pair.here.delete_address(lo, own, 128).has_value());
    CHECK(pair.here.delete_address(lo, own, 128).has_value());
    CHECK_FALSE(pair.here.sends_from(own).value());
}
