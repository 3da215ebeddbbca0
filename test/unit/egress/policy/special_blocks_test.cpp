#include "egress/policy/special_blocks.hpp"

#include "egress/rules/policy_rules.hpp"
#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::egress;
using test::address;

TEST_CASE("special addresses are those that no public name resolves to") {
    for (const char* text : {"0.0.0.0",
                             "0.1.2.3",
                             "10.1.2.3",
                             "100.64.0.1",
                             "100.127.255.255",
                             "127.0.0.1",
                             "127.255.255.255",
                             "169.254.169.254",
                             "172.16.0.1",
                             "172.31.255.255",
                             "192.0.0.1",
                             "192.168.1.1",
                             "224.0.0.1",
                             "240.0.0.1",
                             "255.255.255.255",
                             "::",
                             "::1",
                             "::10.0.0.1",
                             "::ffff:127.0.0.1",
                             "::ffff:8.8.8.8",
                             "::ffff:0:10.0.0.1",
                             "64:ff9b::a00:1",
                             "64:ff9b:1::1",
                             "2001::1",
                             "2002:a00:1::",
                             "fc00::1",
                             "fd12::1",
                             "fe80::1",
                             "febf::1",
                             "fec0::1",
                             "ff02::1",
                             "10.0.0.1",
                             "64:ff9b::808:808",
                             "fd00::1",
                             "192.0.0.1",
                             "198.18.0.1",
                             "198.19.255.255",
                             "100::1"}) {
        INFO(text);
        CHECK(is_special(address(text)));
    }
    for (const char* text :
         {"1.1.1.1",      "9.255.255.255",   "11.0.0.0",        "100.63.255.255",
          "100.128.0.0",  "128.0.0.1",       "169.253.0.1",     "172.15.0.1",
          "172.32.0.1",   "192.0.1.1",       "192.167.1.1",     "198.51.100.1",
          "203.0.113.1",  "223.255.255.255", "2001:db8::1",     "2001:4860:4860::8888",
          "2606:4700::1", "64:ff9c::1",      "2a00::1",         "8.8.8.8",
          "100.128.0.1",  "192.167.255.255", "2606:4700::1111", "198.17.255.255",
          "198.20.0.0",   "100:0:0:1::"}) {
        INFO(text);
        CHECK_FALSE(is_special(address(text)));
    }
}

TEST_CASE("the packet filter refuses the same ranges that answers are cleaned of") {
    REQUIRE(rules::private_ranges().size() == special_blocks().size());
    for (const rules::Prefix& range : rules::private_ranges()) {
        INFO(range.network.to_string());
        CHECK(special_block_of(range.network) == net::AddressBlock(range.network, range.length));
        CHECK(is_special(range.last()));
    }
}
