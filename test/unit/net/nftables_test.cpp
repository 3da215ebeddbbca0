#include "net/nftables.hpp"

#include "support/network_namespace.hpp"

#include <catch2/catch.hpp>
#include <linux/netlink.h>
#include <netinet/in.h>

using namespace opensandbox;
using namespace opensandbox::net;
using namespace opensandbox::net::nft;
using opensandbox::test::TestNamespace;

namespace {

NetlinkSocket open_in(const TestNamespace& place) {
    return place.run([] { return NetlinkSocket::open(NETLINK_NETFILTER).value(); });
}

}  // namespace

TEST_CASE("a transaction makes tables, chains, rules and counters at once") {
    TestNamespace place;
    auto socket = open_in(place);
    Transaction transaction;
    transaction.add_table(Family::inet, "t");
    transaction.add_counter(Family::inet, "t", "hits");
    transaction.add_chain(Family::inet, "t", "refuse");
    transaction.add_rule(Family::inet, "t", "refuse",
                         Rule().count("hits").transport(IPPROTO_TCP).reject_with_reset());
    transaction.add_rule(Family::inet, "t", "refuse", Rule().reject_as_prohibited());
    transaction.add_base_chain(Family::inet, "t", "input", "filter", Hook::input, -5);
    transaction.add_rule(Family::inet, "t", "input",
                         Rule().from_interfaces("osb").source_not_routed_back().go_to("refuse"));
    transaction.add_base_chain(Family::inet, "t", "post", "nat", Hook::postrouting, 100);
    transaction.add_rule(Family::inet, "t", "post",
                         Rule().is_ipv4().source(Ipv4Address({10, 0, 0, 0}), 8).masquerade());
    const auto done = transaction.commit(socket);
    INFO((done ? "" : done.error().message()));
    REQUIRE(done.has_value());

    const auto counts = count_table(socket, "t").value();
    CHECK(counts.tables == 1);
    CHECK(counts.chains == 3);
    CHECK(counts.rules == 4);
    CHECK(read_counter(socket, Family::inet, "t", "hits").value().packets == 0);
    CHECK(count_table(socket, "other").value().tables == 0);
}

TEST_CASE("a transaction that fails in one step does nothing, and names the step") {
    TestNamespace place;
    auto socket = open_in(place);
    Transaction transaction;
    transaction.add_table(Family::inet, "t");
    transaction.add_chain(Family::inet, "t", "a");
    transaction.add_rule(Family::inet, "t", "a", Rule().go_to("nowhere"));
    transaction.add_chain(Family::inet, "t", "b");
    const auto done = transaction.commit(socket);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().code() == ErrorCode::not_found);
    CHECK_THAT(done.error().message(), Catch::Contains("to chain \"a\""));
    CHECK(count_table(socket, "t").value().tables == 0);
    CHECK(read_counter(socket, Family::inet, "t", "hits").error().code() == ErrorCode::not_found);
}

TEST_CASE("the socket is fit for the next transaction after a failed one") {
    TestNamespace place;
    auto socket = open_in(place);
    for (int i = 0; i < 3; ++i) {
        Transaction failing;
        failing.delete_table(Family::inet, "absent");
        failing.add_rule(Family::inet, "absent", "chain", Rule().drop());
        CHECK_FALSE(failing.commit(socket).has_value());
        Transaction working;
        working.add_table(Family::inet, "t");
        CHECK(working.commit(socket).has_value());
    }
    CHECK(count_table(socket, "t").value().tables == 1);
}

TEST_CASE("an empty transaction succeeds") {
    TestNamespace place;
    auto socket = open_in(place);
    CHECK(Transaction().commit(socket).has_value());
}

TEST_CASE("the kernel takes as large a rule as may be built") {
    TestNamespace place;
    auto socket = open_in(place);
    const std::string long_name(255, 'n');
    Transaction transaction;
    transaction.add_table(Family::inet, long_name);
    transaction.add_counter(Family::inet, long_name, long_name);
    transaction.add_chain(Family::inet, long_name, long_name);
    Rule rule;
    for (std::size_t i = 0; i < Rule::kLimit; ++i)
        rule.count(long_name);
    CHECK(rule.valid());
    transaction.add_rule(Family::inet, long_name, long_name, rule);
    const auto done = transaction.commit(socket);
    INFO((done ? "" : done.error().message()));
    CHECK(done.has_value());
    CHECK(count_table(socket, long_name).value().rules == 1);
}

TEST_CASE("what cannot be said in nftables is refused before it is sent") {
    TestNamespace place;
    auto socket = open_in(place);
    Transaction transaction;
    SECTION("a name too long") {
        transaction.add_table(Family::inet, std::string(256, 'n'));
    }
    SECTION("no name") {
        transaction.add_table(Family::inet, "");
    }
    SECTION("a name with a zero byte") {
        transaction.add_table(Family::inet, std::string_view("a\0b", 3));
    }
    SECTION("a rule too long") {
        transaction.add_table(Family::inet, "t");
        transaction.add_chain(Family::inet, "t", "c");
        Rule rule;
        for (std::size_t i = 0; i <= Rule::kLimit; ++i)
            rule.count("x");
        transaction.add_rule(Family::inet, "t", "c", rule);
    }
    const auto done = transaction.commit(socket);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().code() == ErrorCode::invalid_argument);
    CHECK(count_table(socket, "t").value().tables == 0);
}

TEST_CASE("a counter is read from its message, or as zero") {
    CHECK(parse_counter({}).packets == 0);
    const std::vector<std::uint8_t> headers(20);
    CHECK(parse_counter(headers).packets == 0);
}
