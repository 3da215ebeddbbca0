#include "http/router.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::http;

namespace {

Handler nothing() {
    return [](Exchange&) -> Awaitable<void> { co_return; };
}

Router sample() {
    Router router;
    router.add("GET", "/sandboxes", nothing());
    router.add("POST", "/sandboxes", nothing());
    router.add("GET", "/sandboxes/{id}", nothing());
    router.add("GET", "/sandboxes/pools", nothing());
    router.any("/sandboxes/{id}/proxy/{port}/{path...}", nothing());
    router.add("GET", "/", nothing());
    return router;
}

}  // namespace

TEST_CASE("literals win over parameters whatever the order", "[http][router]") {
    auto router = sample();
    CHECK(router.lookup("GET", "/sandboxes/pools").pattern == "/sandboxes/pools");
    auto match = router.lookup("GET", "/sandboxes/x%20y%2Fz");
    REQUIRE(match.handler != nullptr);
    CHECK(match.pattern == "/sandboxes/{id}");
    REQUIRE(match.parameters.size() == 1);
    CHECK(match.parameters[0].first == "id");
    CHECK(match.parameters[0].second == "x y/z");
    CHECK(router.lookup("GET", "/").pattern == "/");
}

TEST_CASE("the rest of a path stays raw and may be empty", "[http][router]") {
    auto router = sample();
    auto match = router.lookup("DELETE", "/sandboxes/a/proxy/80/x%20y//z/");
    REQUIRE(match.handler != nullptr);
    CHECK(match.parameters[1].second == "80");
    CHECK(match.parameters[2].first == "path");
    CHECK(match.parameters[2].second == "x%20y//z/");
    CHECK(router.lookup("GET", "/sandboxes/a/proxy/80/").parameters[2].second.empty());
    CHECK(router.lookup("GET", "/sandboxes/a/proxy/80").parameters[2].second.empty());
}

TEST_CASE("a known path with another method names what is allowed", "[http][router]") {
    auto router = sample();
    auto match = router.lookup("DELETE", "/sandboxes");
    CHECK(match.handler == nullptr);
    CHECK(match.allowed == std::vector<std::string>{"GET", "POST"});
    CHECK(router.lookup("get", "/sandboxes").handler == nullptr);
}

TEST_CASE("unknown paths match nothing", "[http][router]") {
    auto router = sample();
    auto path = GENERATE("", "x", "*", "/sandboxes/", "/sandboxes/a/b", "//sandboxes", "/Sandboxes",
                         "/sandboxes//proxy/80/x");
    CAPTURE(path);
    auto match = router.lookup("GET", path);
    CHECK(match.handler == nullptr);
    CHECK(match.allowed.empty());
}

TEST_CASE("escaped literals match, broken escapes bind as they stand", "[http][router]") {
    auto router = sample();
    CHECK(router.lookup("GET", "/s%61ndboxes").pattern == "/sandboxes");
    CHECK(router.lookup("GET", "/sandboxes/%zz").parameters[0].second == "%zz");
}

TEST_CASE("a route for one method wins over one for any", "[http][router]") {
    Router router;
    router.any("/a/{x}", nothing());
    router.add("GET", "/a/{y}", nothing());
    CHECK(router.lookup("GET", "/a/1").pattern == "/a/{y}");
    CHECK(router.lookup("PUT", "/a/1").pattern == "/a/{x}");
}
