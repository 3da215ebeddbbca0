#include "egress/vault/preconditions.hpp"

#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::egress;
using test::address;

TEST_CASE("a vault needs all that its promises rest on") {
    VaultConditions all;
    all.api_token = all.interception = all.ready = all.filtering = true;
    CHECK_FALSE(missing_condition(all).has_value());
    const auto without = [&](bool VaultConditions::* member) {
        VaultConditions some = all;
        some.*member = false;
        return std::string(missing_condition(some).value_or(""));
    };
    CHECK_THAT(without(&VaultConditions::api_token), Catch::Contains("token"));
    CHECK_THAT(without(&VaultConditions::interception), Catch::Contains("interception"));
    CHECK_THAT(without(&VaultConditions::verified_upstreams), Catch::Contains("verified"));
    CHECK_THAT(without(&VaultConditions::ready), Catch::Contains("ready"));
    CHECK_THAT(without(&VaultConditions::filtering), Catch::Contains("dns+nft"));
}

TEST_CASE("secrets come over TLS, from this host or through a trusted proxy") {
    const std::vector<net::AddressBlock> trusted{net::AddressBlock::parse("10.0.0.0/8").value()};
    const auto may = [&](std::string_view peer, bool tls, std::string_view proto) {
        WriteTransport transport;
        transport.peer = address(peer);
        transport.tls = tls;
        transport.forwarded_proto = proto;
        return is_private_transport(transport, trusted);
    };
    CHECK(may("8.8.8.8", true, ""));
    CHECK(may("127.0.0.1", false, ""));
    CHECK(may("::1", false, ""));
    CHECK(may("::ffff:127.0.0.1", false, ""));
    CHECK(may("10.1.2.3", false, "HTTPS"));
    CHECK(may("::ffff:10.1.2.3", false, "https"));
    CHECK_FALSE(may("10.1.2.3", false, "http"));
    CHECK_FALSE(may("10.1.2.3", false, "https, http"));
    CHECK_FALSE(may("10.1.2.3", false, ""));
    CHECK_FALSE(may("11.1.2.3", false, "https"));
    CHECK_FALSE(may("fd00::1", false, ""));
}

TEST_CASE("secrets that a proxy on this host had in clear must have come from this host") {
    const auto may = [](std::string_view peer, std::string_view proto, std::string_view client) {
        WriteTransport transport;
        transport.peer = address(peer);
        transport.forwarded_proto = proto;
        transport.forwarded_for = client;
        return is_private_transport(transport, {});
    };
    CHECK(may("127.0.0.1", "https", "192.0.2.7"));
    CHECK(may("127.0.0.1", "http", "127.0.0.1"));
    CHECK(may("127.0.0.1", "http", "192.0.2.7, ::ffff:127.0.0.1"));
    CHECK(may("::1", "http", "::1"));
    CHECK_FALSE(may("127.0.0.1", "http", "192.0.2.7"));
    CHECK_FALSE(may("127.0.0.1", "http", "127.0.0.1, 192.0.2.7"));
    CHECK_FALSE(may("127.0.0.1", "http", ""));
    CHECK_FALSE(may("127.0.0.1", "http", "unknown"));
    CHECK_FALSE(may("127.0.0.1", "", "192.0.2.7"));
    CHECK_FALSE(may("192.0.2.1", "http", "127.0.0.1"));
}
