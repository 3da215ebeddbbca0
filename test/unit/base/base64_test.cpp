#include "base/base64.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

TEST_CASE("base64 goes there and back") {
    for (std::string text : {"", "a", "ab", "abc", "user:pass\xff"}) {
        CHECK(from_base64(to_base64(text)) == text);
    }
    CHECK_FALSE(from_base64("abc"));
    CHECK_FALSE(from_base64("a*c="));
}

TEST_CASE("base64 for URLs has an alphabet of its own and no padding") {
    CHECK(to_base64url("") == "");
    CHECK(to_base64url("a") == "YQ");
    CHECK(to_base64url("ab") == "YWI");
    CHECK(to_base64url("abc") == "YWJj");
    CHECK(to_base64url("\xfb\xff\xfe") == "-__-");
}
