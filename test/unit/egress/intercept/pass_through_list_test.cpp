#include "egress/intercept/core/pass_through_list.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::egress;

TEST_CASE("names are passed through exactly or by what is below them", "[egress]") {
    auto list = PassThroughList::make({"Exact.example.com", "*.wild.example.com"}, {});
    REQUIRE(list);
    CHECK(list->has("exact.example.com", 443));
    CHECK_FALSE(list->has("x.exact.example.com", 443));
    CHECK(list->has("a.wild.example.com", 443));
    CHECK(list->has("a.b.wild.example.com", 443));
    CHECK_FALSE(list->has("wild.example.com", 443));
    CHECK_FALSE(list->has("notwild.example.com", 443));
    CHECK_FALSE(list->has("awild.example.com", 443));
}

TEST_CASE("patterns are searched for in the name, with and without its port", "[egress]") {
    auto list = PassThroughList::make({}, {"^api\\.example\\.com$", "internal", "^db\\.x:8443$"});
    REQUIRE(list);
    CHECK(list->has("api.example.com", 443));
    CHECK_FALSE(list->has("api.example.com.evil", 443));
    CHECK(list->has("some.internal.name", 1));
    CHECK(list->has("db.x", 8443));
    CHECK_FALSE(list->has("db.x", 443));
    CHECK(PassThroughList::make({}, {"INTERNAL"})->has("internal", 443));
}

TEST_CASE("an entry that is wrong is named", "[egress]") {
    auto pattern = PassThroughList::make({}, {"("});
    REQUIRE_FALSE(pattern);
    CHECK(pattern.error().message().find("(") != std::string::npos);
    for (std::string name : {"", "*", "*.", "*.*.com", "a b", "1.2.3.4"})
        CHECK_FALSE(PassThroughList::make({name}, {}));
    CHECK(PassThroughList().empty());
}

TEST_CASE("entries of one list are names where they can be, else patterns", "[egress]") {
    auto list = pass_through_list({"a.example.com", "*.wild.example.com", "^p[0-9]+\\.test$"});
    REQUIRE(list);
    CHECK(list->has("a.example.com", 443));
    // A pattern would have found it.
    CHECK_FALSE(list->has("a.example.com.evil.test", 443));
    CHECK(list->has("p12.test", 443));
    CHECK(pass_through_list({})->empty());
    CHECK_FALSE(pass_through_list({"("}));
    for (const char* covered : {"example.com", "wild.example.com", "deep.wild.example.com"}) {
        INFO(covered);
        CHECK(list->has_below(covered, 443));
    }
    CHECK_FALSE(list->has_below("a.example.com", 443));
    CHECK_FALSE(list->has_below("other.com", 443));
    CHECK(pass_through_list({"internal"})->has_below("internal", 443) == false);
    CHECK(pass_through_list({"(internal)"})->has_below("internal", 443));
}
