#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using test_support::AppFixture;

namespace {

runtime::Capabilities able() {
    runtime::Capabilities able;
    able.pools = true;
    return able;
}

std::string pool(const std::string& name, const std::string& buffer = "1") {
    return R"({"name":")" + name +
           R"(","template":{"image":{"uri":"host"}},"capacitySpec":{"bufferMin":)" + buffer +
           R"(,"bufferMax":1,"poolMin":0,"poolMax":1}})";
}

}  // namespace

TEST_CASE("pools over HTTP: made, shown, taken from, changed, removed") {
    AppFixture f("secret", nullptr, able());
    auto made = f.send("POST", "/v1/pools", pool("python"));
    REQUIRE(made.status == 201);
    CHECK(made.body.find("\"name\":\"python\"") != std::string::npos);
    CHECK(f.send("POST", "/pools", pool("python")).code() == "KUBERNETES::POOL_ALREADY_EXISTS");
    f.until([&] {
        return f.get("/v1/pools/python").body.find("\"available\":1") != std::string::npos;
    });
    CHECK(f.get("/pools").body.find("\"items\":[{\"name\":\"python\"") != std::string::npos);

    std::string body = R"({"extensions":{"poolRef":"python"},"timeout":600})";
    auto taken = f.send("POST", "/v1/sandboxes", body);
    REQUIRE(taken.status == 202);
    auto exhausted = f.send("POST", "/v1/sandboxes", body);
    CHECK(exhausted.status == 429);
    CHECK(exhausted.code() == "KUBERNETES::POOL_CAPACITY_EXHAUSTED");
    CHECK(exhausted.field("Retry-After") == "5");

    auto changed =
        f.send("PUT", "/v1/pools/python",
               R"({"capacitySpec":{"bufferMin":0,"bufferMax":0,"poolMin":0,"poolMax":9}})");
    CHECK(changed.status == 200);
    CHECK(changed.body.find("\"poolMax\":9") != std::string::npos);
    CHECK(f.send("DELETE", "/v1/pools/python").status == 204);
    CHECK(f.send("DELETE", "/v1/pools/python").code() == "KUBERNETES::POOL_NOT_FOUND");
    CHECK(f.get("/v1/pools/python").status == 404);
}

TEST_CASE("pools over HTTP: what is refused") {
    AppFixture f("secret", nullptr, able());
    for (
        const char* bad : {
            "{",
            "{}",
            R"({"name":"Bad","template":{},"capacitySpec":{}})",
            R"({"name":"a","template":5,"capacitySpec":{"bufferMin":0,"bufferMax":0,"poolMin":0,"poolMax":0}})",
            R"({"name":"a","template":{},"capacitySpec":{"bufferMin":-1,"bufferMax":0,"poolMin":0,"poolMax":0}})",
        }) {
        INFO(bad);
        CHECK(f.send("POST", "/v1/pools", bad).status == 422);
    }
    CHECK(f.send("POST", "/v1/pools", pool("a", "2")).code() == "SANDBOX::INVALID_PARAMETER");
    auto empty = f.send("POST", "/v1/pools",
                        R"({"name":"a","template":{},"capacitySpec":)"
                        R"({"bufferMin":0,"bufferMax":0,"poolMin":0,"poolMax":0}})");
    CHECK(empty.status == 400);
    CHECK(empty.code() == "SANDBOX::INVALID_PARAMETER");
    CHECK(f.send("PUT", "/v1/pools/a", "{}").status == 422);
}

TEST_CASE("pools and templates over HTTP: 501 where there are none") {
    AppFixture f;
    CHECK(f.send("POST", "/v1/pools", pool("python")).code() == "KUBERNETES::POOL_NOT_SUPPORTED");
    CHECK(f.get("/v1/pools").status == 501);
    CHECK(f.get("/v1/pools/x").status == 501);
    CHECK(f.send("DELETE", "/v1/pools/x").status == 501);
    for (const char* route : {"/v1/templates", "/templates/x"}) {
        auto answer = f.get(route);
        CHECK(answer.status == 501);
        CHECK(answer.code() == "FSB::API_NOT_SUPPORTED");
    }
}
