#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using test_support::AppFixture;

namespace {

runtime::Capabilities able() {
    runtime::Capabilities able;
    able.pause = true;
    able.snapshots = true;
    return able;
}

std::string id_of(const std::string& body) {
    return std::string(json::parse(body)->at("id").as_string());
}

}  // namespace

TEST_CASE("snapshots over HTTP: accepted, found, listed, restored, deleted") {
    AppFixture f("secret", nullptr, able());
    auto sandbox = f.make();
    auto accepted = f.send("POST", "/sandboxes/" + sandbox + "/snapshots", R"({"name":"first"})");
    REQUIRE(accepted.status == 202);
    auto id = id_of(accepted.body);
    CHECK(accepted.field("Location") == "/v1/snapshots/" + id);
    f.until([&] { return f.get("/snapshots/" + id).body.find("\"Ready\"") != std::string::npos; });
    auto nameless = f.send("POST", "/v1/sandboxes/" + sandbox + "/snapshots");
    REQUIRE(nameless.status == 202);
    CHECK(nameless.body.find("\"name\"") == std::string::npos);
    auto list = f.get("/v1/snapshots?name=first&state=Ready&state=Failed&sandboxId=" + sandbox);
    CHECK(list.status == 200);
    CHECK(list.body.find("\"totalItems\":1") != std::string::npos);
    CHECK(f.get("/v1/snapshots?state=ready").body.find("\"totalItems\":0") != std::string::npos);
    CHECK(f.get("/v1/snapshots?state=").body.find("\"totalItems\":0") != std::string::npos);
    CHECK(f.get("/v1/snapshots?page=0&pageSize=201").status == 422);

    auto restored =
        f.send("POST", "/v1/sandboxes", R"({"snapshotId":")" + id + R"(","resourceLimits":{}})");
    REQUIRE(restored.status == 202);
    CHECK(restored.body.find("\"entrypoint\":[\"tail\",\"-f\",\"/dev/null\"]") !=
          std::string::npos);
    CHECK(f.send("DELETE", "/v1/snapshots/" + id).status == 204);
    auto gone = f.get("/v1/snapshots/" + id);
    CHECK(gone.status == 404);
    CHECK(gone.code() == "SNAPSHOT::NOT_FOUND");
    CHECK(f.send("DELETE", "/v1/snapshots/" + id).code() == "SNAPSHOT::NOT_FOUND");
}

TEST_CASE("snapshots over HTTP: what is refused") {
    AppFixture f("secret", nullptr, able());
    auto sandbox = f.make();
    std::string route = "/v1/sandboxes/" + sandbox + "/snapshots";
    CHECK(f.send("POST", route, R"({"name":""})").status == 422);
    CHECK(f.send("POST", route, R"({"name":5})").status == 422);
    CHECK(f.send("POST", route, "[]").status == 422);
    CHECK(f.send("POST", route, "{").status == 422);
    CHECK(f.send("POST", "/v1/sandboxes/none/snapshots").code() == "NATIVE::SANDBOX_NOT_FOUND");
    CHECK(f.send("POST", "/v1/sandboxes", R"({"snapshotId":"none","resourceLimits":{}})").code() ==
          "SNAPSHOT::NOT_FOUND");
    REQUIRE(f.send("POST", "/v1/sandboxes/" + sandbox + "/pause").status == 202);
    auto refused = f.send("POST", route);
    CHECK(refused.status == 409);
    CHECK(refused.code() == "SNAPSHOT::INVALID_SOURCE_STATE");
}

TEST_CASE("snapshots over HTTP: a runtime without them says so") {
    AppFixture f;
    auto sandbox = f.make();
    CHECK(f.send("POST", "/v1/sandboxes/" + sandbox + "/snapshots").code() ==
          "SNAPSHOT::NOT_IMPLEMENTED");
    for (const char* method : {"GET", "DELETE"}) {
        auto answer = f.send(method, "/v1/snapshots/x");
        CHECK(answer.status == 501);
        CHECK(answer.code() == "SNAPSHOT::NOT_IMPLEMENTED");
    }
    CHECK(f.get("/snapshots").status == 501);
}

TEST_CASE("pause and resume over HTTP: empty answers, the proxy does not wait for the paused") {
    AppFixture f("secret", nullptr, able());
    auto sandbox = f.make();
    std::string route = "/v1/sandboxes/" + sandbox;
    auto paused = f.send("POST", route + "/pause");
    CHECK(paused.status == 202);
    CHECK(paused.body.empty());
    CHECK(paused.field("Content-Length") == "0");
    CHECK(f.get(route).body.find("\"Paused\"") != std::string::npos);
    CHECK(f.get("/v1/sandboxes?state=paused").body.find(sandbox) != std::string::npos);
    CHECK(f.send("POST", route + "/pause").code() == "NATIVE::SANDBOX_NOT_RUNNING");
    auto proxied = f.get(route + "/proxy/8080/");
    CHECK(proxied.status == 502);
    CHECK(proxied.code() == "BACKEND_CONNECTION_FAILED");
    auto resumed = f.send("POST", "/sandboxes/" + sandbox + "/resume");
    CHECK(resumed.status == 202);
    CHECK(resumed.body.empty());
    CHECK(f.send("POST", route + "/resume").code() == "NATIVE::SANDBOX_NOT_PAUSED");
    CHECK(f.send("POST", "/v1/sandboxes/none/pause").status == 404);
}
