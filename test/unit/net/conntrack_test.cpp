#include "net/conntrack.hpp"

#include "net/nftables.hpp"
#include "support/catch_result.hpp"
#include "support/ip_probe.hpp"
#include "support/veth.hpp"

#include <catch2/catch.hpp>
#include <linux/netlink.h>

using namespace opensandbox;
using namespace opensandbox::test;
using net::ConnectionTracking;

namespace {

/// Two namespaces; the first tracks its connections and notes 7 with those to port 8001.
struct Pair {
    TestNamespace here;
    TestNamespace there;
    Veth link{VethEnd(here, "a"), VethEnd(there, "b"), 1};

    Pair() {
        link.a.add_address("192.0.2.1", 24);
        link.b.add_address("192.0.2.2", 24);
        link.a.add_address("fd78::1", 64);
        link.a.add_route("fd78::", 64);
        link.b.add_address("fd78::2", 64);
        link.b.add_route("fd78::", 64);
        using namespace net::nft;
        Transaction transaction;
        transaction.add_table(Family::inet, "t");
        transaction.add_base_chain(Family::inet, "t", "out", "filter", Hook::output, 0);
        transaction.add_rule(
            Family::inet, "t", "out",
            Rule().transport(IPPROTO_TCP).destination_port(8001).mark_connection(7).accept());
        transaction.add_rule(Family::inet, "t", "out", Rule().connection(fresh).accept());
        auto socket = here.run([] { return net::NetlinkSocket::open(NETLINK_NETFILTER).value(); });
        transaction.commit(socket).value();
    }
    [[nodiscard]] ConnectionTracking open() const {
        return here.run([] { return ConnectionTracking::open().value(); });
    }
};

}  // namespace

TEST_CASE("connections are listed by where they come from, in both families") {
    const Pair pair;
    auto tracking = pair.open();
    for (const char* to : {"192.0.2.2", "fd78::2"}) {
        const auto own = ip(ip(to).is_v6() ? "fd78::1" : "192.0.2.1");
        const Listener listener(pair.there, to, 8000);
        REQUIRE(connect_to(pair.here, to, 8000) == 0);
        const auto listed = tracking.list(own);
        REQUIRE(listed);
        REQUIRE(listed->size() == 1);
        const auto& connection = listed->front();
        CHECK(connection.source == own);
        CHECK(connection.destination == ip(to));
        CHECK(connection.protocol == IPPROTO_TCP);
        CHECK(connection.destination_port == 8000);
        CHECK(connection.source_port != 0);
        CHECK_FALSE(connection.destination_translated);
        CHECK(tracking.list(ip("192.0.2.77")).value().empty());
        CHECK(tracking.list(ip("fd78::77")).value().empty());

        REQUIRE(tracking.remove(connection));
        CHECK(tracking.list(own).value().empty());
        CHECK(tracking.remove(connection));
    }
}

TEST_CASE("connections are deleted by where they come from and go to") {
    const Pair pair;
    auto tracking = pair.open();
    for (const char* to : {"192.0.2.2", "fd78::2"}) {
        const auto own = ip(ip(to).is_v6() ? "fd78::1" : "192.0.2.1");
        const Listener listener(pair.there, to, 8000);
        REQUIRE(connect_to(pair.here, to, 8000) == 0);
        REQUIRE(connect_to(pair.here, to, 8000) == 0);
        REQUIRE(tracking.remove_all(own, ip(ip(to).is_v6() ? "fd78::9" : "192.0.2.9")));
        CHECK(tracking.list(own).value().size() == 2);
        REQUIRE(tracking.remove_all(own, ip(to)));
        CHECK(tracking.list(own).value().empty());
        REQUIRE(connect_to(pair.here, to, 8000) == 0);
        REQUIRE(tracking.remove_all(own));
        CHECK(tracking.list(own).value().empty());
    }
}

TEST_CASE("connections are listed by the number that a rule noted with them") {
    const Pair pair;
    auto tracking = pair.open();
    const Listener plain(pair.there, "192.0.2.2", 8000);
    const Listener noted(pair.there, "192.0.2.2", 8001);
    REQUIRE(connect_to(pair.here, "192.0.2.2", 8000) == 0);
    REQUIRE(connect_to(pair.here, "192.0.2.2", 8001) == 0);
    const auto listed = tracking.list_marked(7);
    REQUIRE(listed);
    REQUIRE(listed->size() == 1);
    CHECK(listed->front().destination_port == 8001);
    CHECK(listed->front().mark == 7);
}

TEST_CASE("what is no connection is not read as one") {
    CHECK_FALSE(net::parse_connection({}).has_value());
    const std::vector<std::uint8_t> noise(64, 0xff);
    CHECK_FALSE(net::parse_connection(noise).has_value());
}
