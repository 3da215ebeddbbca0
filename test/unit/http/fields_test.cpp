#include "http/fields.hpp"

#include <catch2/catch.hpp>

using opensandbox::http::Fields;

TEST_CASE("field names compare without case and keep repeats apart", "[http][fields]") {
    Fields fields{{"Set-Cookie", "a=1"}, {"X", "y"}};
    fields.add("set-cookie", "b=2");
    CHECK(fields.get("SET-COOKIE") == std::string_view("a=1"));
    CHECK(fields.size() == 3);
    CHECK_FALSE(fields.has("Set-Cookie2"));
}

TEST_CASE("setting a field replaces every one of its name", "[http][fields]") {
    Fields fields{{"A", "1"}, {"B", "2"}, {"a", "3"}};
    fields.set("a", "4");
    CHECK(fields.size() == 2);
    CHECK(fields.get("A") == std::string_view("4"));
    fields.set("C", "5");
    CHECK(fields.get("c") == std::string_view("5"));
    CHECK(fields.erase("A") == 1);
    CHECK(fields.erase("A") == 0);
}

TEST_CASE("tokens are found in lists over several fields", "[http][fields]") {
    Fields fields{{"Connection", "keep-alive ,\tUpgrade"}, {"connection", "x"}};
    CHECK(fields.has_token("Connection", "upgrade"));
    CHECK(fields.has_token("Connection", "keep-alive"));
    CHECK(fields.has_token("Connection", "X"));
    CHECK_FALSE(fields.has_token("Connection", "up"));
    CHECK_FALSE(fields.has_token("Connection", "close"));
}
