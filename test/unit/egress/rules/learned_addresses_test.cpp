#include "egress/rules/learned_addresses.hpp"

#include <catch2/catch.hpp>
#include <netinet/in.h>

#include <algorithm>

using namespace opensandbox;
using namespace opensandbox::egress::rules;
using namespace std::chrono_literals;

namespace {

const LearnedAddresses::Time start{1000s};

LearnedKey key(const std::string& address, const Scope& scope = {}) {
    return {boost::asio::ip::make_address(address), scope};
}

bool all(const std::string&, const Scope&) {
    return true;
}

}  // namespace

TEST_CASE("what the kernel does not have, or not for so long, is sent to it") {
    LearnedAddresses learned;
    const std::vector keys{key("1.1.1.1"), key("2001:db8::1")};
    auto changes = learned.needed("a", keys, start + 60s, start).value();
    REQUIRE(changes.size() == 2);
    CHECK(changes[0].lifetime == 60s);
    learned.record("a", "x.test", keys, start + 60s);

    CHECK(learned.needed("a", keys, start + 60s, start + 10s).value().empty());
    CHECK(learned.needed("a", keys, start + 30s, start + 10s).value().empty());
    changes = learned.needed("a", keys, start + 90s, start + 10s).value();
    REQUIRE(changes.size() == 2);
    CHECK(changes[0].lifetime == 80s);
    CHECK(learned.needed("b", keys, start + 60s, start).value().size() == 2);
    CHECK(learned.needed("a", {key("1.1.1.1", Scope(IPPROTO_TCP, 443))}, start + 60s, start)
              .value()
              .size() == 1);
}

TEST_CASE("an address stays until its time has passed, and the longest time counts") {
    LearnedAddresses learned;
    learned.record("a", "x.test", {key("1.1.1.1")}, start + 60s);
    learned.record("a", "x.test", {key("1.1.1.1")}, start + 20s);
    learned.expire(start + 59s);
    CHECK(learned.contains("a", key("1.1.1.1"), start + 59s));
    CHECK(learned.size() == 1);
    learned.record("a", "x.test", {key("1.1.1.1")}, start + 100s);
    learned.expire(start + 60s);
    CHECK(learned.contains("a", key("1.1.1.1"), start + 99s));
    CHECK_FALSE(learned.contains("a", key("1.1.1.1"), start + 100s));
    learned.expire(start + 100s);
    CHECK(learned.size() == 0);
}

TEST_CASE("a name that loses its permission takes its addresses, but not those of others") {
    LearnedAddresses learned;
    learned.record("a", "bad.test", {key("1.1.1.1"), key("2.2.2.2")}, start + 100s);
    learned.record("a", "good.test", {key("2.2.2.2")}, start + 50s);
    learned.record("b", "bad.test", {key("1.1.1.1")}, start + 100s);
    CHECK(learned.names("a", boost::asio::ip::make_address("2.2.2.2")) ==
          std::vector<std::string>{"bad.test", "good.test"});

    const auto loss = learned.revoke(
        "a", [](const std::string& name, const Scope&) { return name != "bad.test"; }, start + 10s);
    REQUIRE(loss.removed.size() == 1);
    CHECK(loss.removed[0] == key("1.1.1.1"));
    REQUIRE(loss.shortened.size() == 1);
    CHECK(loss.shortened[0].key == key("2.2.2.2"));
    CHECK(loss.shortened[0].lifetime == 40s);
    CHECK(learned.contains("b", key("1.1.1.1"), start));
    learned.expire(start + 50s);
    CHECK(learned.of("a", start).empty());
    CHECK(learned.size() == 1);
}

TEST_CASE("a name may lose some ports and keep others") {
    LearnedAddresses learned;
    const Scope https(IPPROTO_TCP, 443);
    const Scope http(IPPROTO_TCP, 80);
    learned.record("a", "x.test", {key("1.1.1.1", https), key("1.1.1.1", http)}, start + 60s);
    const auto loss = learned.revoke(
        "a", [&](const std::string&, const Scope& scope) { return scope == https; }, start);
    REQUIRE(loss.removed.size() == 1);
    CHECK(loss.removed[0].scope == http);
    CHECK(learned.contains("a", key("1.1.1.1", https), start));
}

TEST_CASE("there is a limit to what is learned, in a sandbox and in all") {
    LearnedAddresses learned(LearnedAddresses::Limits{2, 3});
    learned.record("a", "x.test", {key("1.1.1.1"), key("1.1.1.2")}, start + 60s);
    const auto refused = learned.needed("a", {key("1.1.1.3")}, start + 60s, start);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::resource_exhausted);
    CHECK(learned.needed("a", {key("1.1.1.2")}, start + 90s, start).has_value());
    learned.record("b", "x.test", {key("1.1.1.1")}, start + 60s);
    CHECK_FALSE(learned.needed("c", {key("1.1.1.1")}, start + 60s, start).has_value());
    CHECK(learned.forget("a").size() == 2);
    CHECK(learned.needed("c", {key("1.1.1.1")}, start + 60s, start).has_value());
    CHECK(learned.revoke("a", all, start).removed.empty());
}
