#include "net/address_block.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::net;

namespace {

boost::asio::ip::address address(std::string_view text) {
    return boost::asio::ip::make_address(text);
}

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
