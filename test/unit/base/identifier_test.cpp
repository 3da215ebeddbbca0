#include "base/identifier.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace opensandbox;

TEST_CASE("identifiers have the shape that clients expect and do not repeat") {
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        std::string uuid = new_uuid();
        CHECK(is_uuid(uuid));
        CHECK(uuid[14] == '4');
        CHECK(std::string("89ab").find(uuid[19]) != std::string::npos);
        CHECK(seen.insert(uuid).second);
        CHECK(seen.insert(new_token()).second);
        CHECK(seen.insert(new_hex_id()).second);
    }
    CHECK(new_token().size() == 32);
    CHECK(new_hex_id().size() == 32);
}

TEST_CASE("only well-formed text is a UUID") {
    CHECK(is_uuid("0b5be8fe-f6af-4015-98f7-5203b4079475"));
    CHECK_FALSE(is_uuid("0b5be8fe-f6af-4015-98f7-5203b407947"));
    CHECK_FALSE(is_uuid("0b5be8fe_f6af-4015-98f7-5203b4079475"));
    CHECK_FALSE(is_uuid("gb5be8fe-f6af-4015-98f7-5203b4079475"));
}

TEST_CASE("constant-time comparison compares") {
    CHECK(equal_constant_time("", ""));
    CHECK(equal_constant_time("abc", "abc"));
    CHECK_FALSE(equal_constant_time("abc", "abd"));
    CHECK_FALSE(equal_constant_time("abc", "ab"));
    CHECK_FALSE(equal_constant_time("ab", "abc"));
}
