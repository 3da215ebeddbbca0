#include "registry/authentication.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using opensandbox::registry::parse_challenges;

TEST_CASE("a bearer challenge gives realm, service and scope") {
    auto found =
        parse_challenges(R"(Bearer realm="https://auth.example/token",service="registry.example",)"
                         R"(scope="repository:a/b:pull,push")");
    REQUIRE(found);
    REQUIRE(found->size() == 1);
    CHECK(found->front().scheme == "bearer");
    CHECK(found->front().parameter("realm") == "https://auth.example/token");
    CHECK(found->front().parameter("service") == "registry.example");
    CHECK(found->front().parameter("scope") == "repository:a/b:pull,push");
    CHECK(found->front().parameter("error").empty());
}

TEST_CASE("several challenges stand in one field") {
    auto found = parse_challenges(
        R"(Negotiate abc==, BASIC Realm = "a \"quoted\", name" , Digest nonce=x , Bearer)");
    REQUIRE(found);
    REQUIRE(found->size() == 4);
    CHECK(found->at(0).scheme == "negotiate");
    CHECK(found->at(1).scheme == "basic");
    CHECK(found->at(1).parameter("realm") == "a \"quoted\", name");
    CHECK(found->at(2).parameter("nonce") == "x");
    CHECK(found->at(3).scheme == "bearer");
    CHECK(found->at(3).parameters.empty());
}

TEST_CASE("nothing offered is no challenge") {
    REQUIRE(parse_challenges(""));
    CHECK(parse_challenges(" , ")->empty());
}

TEST_CASE("a malformed challenge is refused") {
    for (const char* field : {"Bearer realm=\"open", "Bearer a=b, c=", "\"x\"",
                              "Bearer realm=\"a\x01\"", "Bearer realm=\"a\\"}) {
        CAPTURE(field);
        auto found = parse_challenges(field);
        REQUIRE_FALSE(found);
        CHECK(found.error().code() == opensandbox::ErrorCode::protocol);
    }
    CHECK_FALSE(parse_challenges(std::string(9000, 'a')));
    std::string many;
    for (int i = 0; i < 17; ++i)
        many += "Basic, ";
    CHECK_FALSE(parse_challenges(many));
    std::string parameters = "Bearer ";
    for (int i = 0; i < 33; ++i)
        parameters += "a=b,";
    CHECK_FALSE(parse_challenges(parameters));
}
