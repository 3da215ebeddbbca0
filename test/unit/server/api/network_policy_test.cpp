#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using test_support::AppFixture;

TEST_CASE("network policy: bodies are checked before anything is asked") {
    AppFixture f;
    std::string route = "/v1/sandboxes/" + f.make() + "/networkpolicy";
    CHECK(f.send("PUT", route, R"({"egress":[{"action":"allow"}]})").status == 422);
    CHECK(f.send("PUT", route, "[]").status == 422);
    CHECK(f.send("PATCH", route, "{}").status == 422);
    CHECK(f.send("PATCH", route, R"([{"action":"allow","target":""}])").status == 422);
    CHECK(f.send("DELETE", route, "[5]").status == 422);
    CHECK(f.send("DELETE", route).status == 422);
}

TEST_CASE("network policy: a sandbox without a sidecar is a bad gateway, an unknown one unknown") {
    AppFixture f;
    std::string route = "/v1/sandboxes/" + f.make() + "/networkpolicy";
    auto answer = f.get(route);
    CHECK(answer.status == 502);
    CHECK(answer.code() == "BACKEND_CONNECTION_FAILED");
    CHECK(f.send("PUT", route, "{}").status == 502);
    CHECK(f.get("/v1/sandboxes/none/networkpolicy").code() == "NATIVE::SANDBOX_NOT_FOUND");
    auto other = f.get("/v1/sandboxes/fsb-1/networkpolicy");
    CHECK(other.status == 404);
    CHECK(other.code() == "GENERAL::UNKNOWN_ERROR");
}
