#include "egress/rules/policy_rules.hpp"
#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::egress;
using test::address;

namespace {

AddressBlock block(std::string_view text) {
    return AddressBlock::parse(text).value();
}

std::string texts(const std::vector<AddressBlock>& blocks) {
    std::string out;
    for (const AddressBlock& b : blocks)
        out += (out.empty() ? "" : " ") + b.to_string();
    return out;
}

}  // namespace

TEST_CASE("a block tells what it holds") {
    CHECK(block("10.0.0.0/8").contains(address("10.255.0.1")));
    CHECK_FALSE(block("10.0.0.0/8").contains(address("11.0.0.0")));
    CHECK_FALSE(block("0.0.0.0/0").contains(address("::1")));
    CHECK_FALSE(block("::/0").contains(address("1.2.3.4")));
    CHECK(block("::/0").contains(block("fd00::/8")));
    CHECK_FALSE(block("fd00::/9").contains(block("fd00::/8")));
    CHECK(block("fd00::/9").overlaps(block("fd00::/8")));
    CHECK_FALSE(block("10.0.0.0/25").overlaps(block("10.0.0.128/25")));
    CHECK(block("10.0.0.0/25").last() == address("10.0.0.127"));
    CHECK(block("fd00::/127").last() == address("fd00::1"));
    CHECK(block("10.0.0.1/32") == AddressBlock(address("10.0.0.1")));
    CHECK(AddressBlock(address("fd00::1"), 64).to_string() == "fd00::/64");
    CHECK(AddressBlock(address("fe80::1%1")) == block("fe80::1"));
}

TEST_CASE("blocks lose what another one holds") {
    CHECK(texts(without_overlap({block("10.1.0.0/16"), block("fd00::/8"), block("10.0.0.0/8"),
                                 block("10.0.0.0/8"), block("9.0.0.1"), block("10.0.0.0/16"),
                                 block("11.0.0.0/8"), block("fd12::1")})) ==
          "9.0.0.1 10.0.0.0/8 11.0.0.0/8 fd00::/8");
    CHECK(texts(without_overlap({block("10.0.0.128/25"), block("10.0.0.0/25")})) ==
          "10.0.0.0/25 10.0.0.128/25");
    CHECK(without_overlap({}).empty());
}

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
        CHECK(special_block_of(range.network) == AddressBlock(range.network, range.length));
        CHECK(is_special(range.last()));
    }
}
