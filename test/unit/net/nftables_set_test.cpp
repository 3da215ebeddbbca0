#include "net/nftables_set.hpp"

#include "net/nftables.hpp"
#include "support/catch_result.hpp"
#include "support/network_namespace.hpp"

#include <catch2/catch.hpp>
#include <linux/netlink.h>

#include <algorithm>

using namespace opensandbox;
using namespace opensandbox::net;
using namespace opensandbox::net::nft;
using namespace std::chrono_literals;
using opensandbox::test::TestNamespace;

namespace {

NetlinkSocket open_in(const TestNamespace& place) {
    return place.run([] { return NetlinkSocket::open(NETLINK_NETFILTER).value(); });
}

SetLayout timed_layout() {
    SetLayout layout({KeyField::link_name, KeyField::ipv4, KeyField::port});
    layout.timeouts = true;
    return layout;
}

Element timed(const std::string& address, std::uint16_t port, std::chrono::milliseconds lifetime,
              std::string comment = {}) {
    Element element(SetKey().link("v1").ipv4(boost::asio::ip::make_address_v4(address)).port(port));
    element.lifetime = lifetime;
    element.comment = std::move(comment);
    return element;
}

Status add_set(NetlinkSocket& socket, const SetLayout& layout) {
    Transaction transaction;
    transaction.add_table(Family::inet, "t");
    transaction.add_set(Family::inet, "t", "s", layout);
    return transaction.commit(socket);
}

}  // namespace

TEST_CASE("elements are listed as they were put, with their time, comment and value") {
    TestNamespace place;
    auto socket = open_in(place);
    REQUIRE(add_set(socket, timed_layout()));
    Transaction transaction;
    const std::vector elements{timed("10.0.0.1", 443, 100s, "api.example.com"),
                               timed("10.0.0.2", 80, 50s)};
    transaction.put_elements(Family::inet, "t", "s", timed_layout(), elements);
    REQUIRE(transaction.commit(socket));
    auto listed = list_elements(socket, Family::inet, "t", "s").value();
    REQUIRE(listed.size() == 2);
    std::ranges::sort(listed, {}, &ListedElement::key);
    KeyReader key(listed[0].key);
    CHECK(key.link().value() == "v1");
    CHECK(key.ipv4().value().to_string() == "10.0.0.1");
    CHECK(key.port().value() == 443);
    CHECK_FALSE(key.port().has_value());
    CHECK(listed[0].comment == "api.example.com");
    CHECK(listed[0].remaining > 90s);
    CHECK(listed[0].remaining <= 100s);
    CHECK(listed[1].remaining <= 50s);
}

TEST_CASE("to put an element again gives it another time and comment, in both directions") {
    TestNamespace place;
    auto socket = open_in(place);
    REQUIRE(add_set(socket, timed_layout()));
    for (const auto lifetime : {100s, 300s, 20s, 20s}) {
        Transaction transaction;
        const std::vector elements{
            timed("10.0.0.1", 443, lifetime, std::to_string(lifetime.count()))};
        transaction.put_elements(Family::inet, "t", "s", timed_layout(), elements);
        REQUIRE(transaction.commit(socket));
        const auto listed = list_elements(socket, Family::inet, "t", "s").value();
        REQUIRE(listed.size() == 1);
        CHECK(listed[0].remaining <= lifetime);
        CHECK(listed[0].remaining > lifetime - 10s);
        CHECK(listed[0].comment == std::to_string(lifetime.count()));
    }
}

TEST_CASE("elements are removed whether they are there or not") {
    TestNamespace place;
    auto socket = open_in(place);
    REQUIRE(add_set(socket, timed_layout()));
    for (int turn = 0; turn < 2; ++turn) {
        Transaction transaction;
        const std::vector elements{timed("10.0.0.1", 443, 100s), timed("10.0.0.9", 1, 0s)};
        transaction.remove_elements(Family::inet, "t", "s", timed_layout(), elements);
        REQUIRE(transaction.commit(socket));
        CHECK(list_elements(socket, Family::inet, "t", "s").value().empty());
        Transaction again;
        again.put_elements(Family::inet, "t", "s", timed_layout(), std::span(elements).first(1));
        REQUIRE(again.commit(socket));
    }
}

TEST_CASE("a transaction may be as large as thousands of elements") {
    TestNamespace place;
    auto socket = open_in(place);
    REQUIRE(add_set(socket, timed_layout()));
    std::vector<Element> elements;
    for (std::uint32_t i = 0; i < 20'000; ++i)
        elements.push_back(timed(Ipv4Address(0x0a000000U + i).to_string(), 443, 100s, "x.test"));
    Transaction transaction;
    transaction.put_elements(Family::inet, "t", "s", timed_layout(), elements);
    const auto done = transaction.commit(socket);
    INFO((done ? "" : done.error().message()));
    REQUIRE(done);
    CHECK(list_elements(socket, Family::inet, "t", "s").value().size() == 20'000);
}

TEST_CASE("a map leads to chains") {
    TestNamespace place;
    auto socket = open_in(place);
    const SetLayout layout({KeyField::link_name}, SetValue::verdict);
    REQUIRE(add_set(socket, layout));
    Element element(SetKey().link("v1"));
    element.chain = "c";
    Transaction transaction;
    transaction.add_chain(Family::inet, "t", "c");
    transaction.add_chain(Family::inet, "t", "d");
    transaction.add_elements(Family::inet, "t", "s", layout, {&element, 1});
    REQUIRE(transaction.commit(socket));
    auto chains = list_chains(socket, Family::inet, "t").value();
    std::ranges::sort(chains);
    CHECK(chains == std::vector<std::string>{"c", "d"});
    const auto listed = list_elements(socket, Family::inet, "t", "s").value();
    REQUIRE(listed.size() == 1);
    CHECK(listed[0].chain == "c");
    Transaction removal;
    removal.delete_chain(Family::inet, "t", "c");
    CHECK_FALSE(removal.commit(socket));
    Transaction both;
    both.remove_elements(Family::inet, "t", "s", layout, {&element, 1});
    both.delete_chain(Family::inet, "t", "c");
    CHECK(both.commit(socket));
}

TEST_CASE("keys that do not fit their set are refused before they are sent") {
    TestNamespace place;
    auto socket = open_in(place);
    REQUIRE(add_set(socket, timed_layout()));
    Element element;
    SECTION("a part is missing") {
        element = Element(SetKey().link("v1"));
    }
    SECTION("a link's name is too long") {
        element = Element(SetKey().link(std::string(16, 'v')).ipv4({}).port(1));
    }
    SECTION("a link without a name") {
        element = Element(SetKey().link("").ipv4({}).port(1));
    }
    Transaction transaction;
    transaction.put_elements(Family::inet, "t", "s", timed_layout(), {&element, 1});
    const auto done = transaction.commit(socket);
    REQUIRE_FALSE(done);
    CHECK(done.error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("what is no element is not read as one") {
    CHECK(parse_elements({}).empty());
    const std::vector<std::uint8_t> noise(64, 0xff);
    CHECK(parse_elements(noise).empty());
    CHECK_FALSE(KeyReader({}).link().has_value());
    CHECK_FALSE(KeyReader({noise.data(), 3}).ipv4().has_value());
}

TEST_CASE("there are no elements of a set that is not there") {
    TestNamespace place;
    auto socket = open_in(place);
    const auto listed = list_elements(socket, Family::inet, "t", "s");
    REQUIRE_FALSE(listed);
    CHECK(listed.error().code() == ErrorCode::not_found);
    CHECK(list_chains(socket, Family::inet, "t").value().empty());
}
