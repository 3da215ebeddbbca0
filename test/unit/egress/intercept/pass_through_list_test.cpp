#include "egress/intercept/pass_through_list.hpp"

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
