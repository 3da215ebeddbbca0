#include "server/tenants/file_tenants.hpp"
#include "server/tenants/http_tenants.hpp"
#include "support/catch_result.hpp"
#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace opensandbox;
using namespace opensandbox::server;
using Catch::Contains;
using Catch::StartsWith;
using http::test::TestServer;
using test_support::Answer;
using test_support::AppFixture;

namespace {

constexpr const char* kTwoTenants = R"(
[[tenants]]
name = "alice"
namespace = "team-a"
api_keys = ["key-a", "key-a2"]
max_sandboxes = 1
[[tenants]]
name = "bob"
namespace = "team-b"
api_keys = ["key-b"]
)";

/// Two tenants, known at once.
class KnownTenants final : public Tenants {
  public:
    Awaitable<Result<std::string>> authenticate(std::string key) override {
        if (down) co_return Error(ErrorCode::unavailable, "the tenant provider is down");
        if (key == "key-a") co_return std::string("team-a");
        if (key == "key-b") co_return std::string("team-b");
        co_return Error(ErrorCode::unauthenticated, "no tenant has this key");
    }
    [[nodiscard]] model::Quota quota(std::string_view) const override { return {}; }
    void stop() override {}
    bool down = false;
};

struct TenantFixture : AppFixture {
    TenantFixture() : TenantFixture(std::make_shared<KnownTenants>()) {}
    explicit TenantFixture(std::shared_ptr<KnownTenants> t)
        : AppFixture("key-a", [t](Services& s) { s.api_key.clear(), s.tenants = t; }), known(t) {}

    Answer as(const std::string& key, const std::string& method, const std::string& target,
              std::string body = {}, http::Fields fields = {}) {
        fields.add("OPEN-SANDBOX-API-KEY", key);
        return send(method, target, std::move(body), std::move(fields));
    }
    std::string raw(const std::string& request) {
        std::string answer;
        loop.run(
            [&]() -> Awaitable<void> { answer = co_await http::test::talk(web->port, request); });
        return answer;
    }
    std::shared_ptr<KnownTenants> known;
};

constexpr const char* kCreate =
    R"({"image":{"uri":"host"},"entrypoint":["sleep","1"],"timeout":600,"resourceLimits":{}})";

}  // namespace

TEST_CASE("tenants file: rows become keys, namespaces and quotas") {
    model::Quota usual;
    usual.max_sandboxes = 7;
    usual.max_cpu_millicores = 4000;
    auto table = parse_tenants(kTwoTenants, "t", usual);
    REQUIRE(table.has_value());
    CHECK(table->space_of_key.at(key_digest("key-a2")) == "team-a");
    CHECK(table->space_of_key.at(key_digest("key-b")) == "team-b");
    CHECK(table->quota_of_space.at("team-a").max_sandboxes == 1);
    CHECK(table->quota_of_space.at("team-a").max_cpu_millicores == 4000);
    CHECK(table->quota_of_space.at("team-b").max_sandboxes == 7);
}

TEST_CASE("tenants file: a broken rule is named with its row") {
    const std::pair<const char*, const char*> broken[] = {
        {"tenants = 1", "tenants"},
        {"[[tenants]]\nnamespace='a'\napi_keys=['k']", "tenants[0].name"},
        {"[[tenants]]\nname='a'\napi_keys=['k']", "tenants[0].namespace"},
        {"[[tenants]]\nname='a'\nnamespace='A b'\napi_keys=['k']", "tenants[0].namespace"},
        {"[[tenants]]\nname='a'\nnamespace='a'", "tenants[0].api_keys"},
        {"[[tenants]]\nname='a'\nnamespace='a'\napi_keys=[]", "tenants[0].api_keys"},
        {"[[tenants]]\nname='a'\nnamespace='a'\napi_keys=['']", "tenants[0].api_keys"},
        {"[[tenants]]\nname='a'\nnamespace='a'\napi_keys=['k']\n"
         "[[tenants]]\nname='b'\nnamespace='b'\napi_keys=['k']",
         "tenants[1].api_keys"},
        {"[[tenants]]\nname='a'\nnamespace='a'\napi_keys=['k']\nmax_cpu=-1", "tenants[0].max_cpu"},
        {"[[tenants", "file:1"},
    };
    for (const auto& [text, where] : broken) {
        INFO(text);
        auto table = parse_tenants(text, "file", {});
        REQUIRE_FALSE(table.has_value());
        CHECK_THAT(table.error().message(), Contains(where));
    }
}

TEST_CASE("tenants file: a change counts, a broken one does not, a missing file leaves nobody") {
    test_support::ScratchDirectory scratch;
    test_support::Loop loop;
    auto file = scratch.path / "tenants.toml";
    auto write = [&](const std::string& text) {
        // Renamed into place, as editors do.
        std::ofstream(scratch.path / "next") << text;
        std::filesystem::rename(scratch.path / "next", file);
    };
    auto tenants = std::make_shared<FileTenants>(loop.executor(), file, model::Quota());
    REQUIRE_FALSE(tenants->load().has_value());
    write(kTwoTenants);
    REQUIRE(tenants->load());
    tenants->watch(std::chrono::milliseconds(2));
    auto knows = [&](std::string key) {
        bool known = false;
        loop.run([&]() -> Awaitable<void> {
            auto space = co_await tenants->authenticate(key);
            known = space.has_value();
        });
        return known;
    };
    auto until = [&](std::string key, bool wanted) {
        for (int i = 0; i < 5000 && knows(key) != wanted; ++i) {
            loop.run(
                []() -> Awaitable<void> { co_await net::sleep_for(std::chrono::milliseconds(1)); });
        }
        return knows(key) == wanted;
    };
    CHECK(knows("key-a"));
    CHECK_FALSE(knows("key-c"));
    write("[[tenants]]\nname='c'\nnamespace='c'\napi_keys=['key-c']");
    CHECK(until("key-c", true));
    CHECK_FALSE(knows("key-a"));
    write("[[tenants]]\nname=1");
    loop.run([]() -> Awaitable<void> { co_await net::sleep_for(std::chrono::milliseconds(30)); });
    CHECK(knows("key-c"));
    std::filesystem::remove(file);
    CHECK(until("key-c", false));
    tenants->stop();
}

TEST_CASE("tenants by HTTP: asked with the key, kept for its time, stale when the service fails") {
    test_support::Loop loop;
    int asked = 0;
    int status = 200;
    std::string body = R"({"namespace":"team-a","ttl":0})";
    std::string seen_key;
    std::string seen_auth;
    TestServer service(loop, [&](http::Exchange& x) -> Awaitable<void> {
        ++asked;
        seen_key = x.request().fields.get("OPEN-SANDBOX-API-KEY").value_or("");
        seen_auth = x.request().fields.get("X-Auth").value_or("");
        auto response = http::json_response(status, body);
        co_await x.respond(std::move(response));
    });
    Config config;
    config.tenants.auth_header = "X-Auth";
    config.tenants.auth_token = "t";
    config.tenants.endpoint = "http://127.0.0.1:" + std::to_string(service.port) + "/who";
    config.tenants.provider = TenantProvider::http;
    auto made = make_tenants(loop.executor(), config);
    REQUIRE(made.has_value());
    auto ask = [&](std::string key = "k") {
        std::optional<Result<std::string>> space;
        loop.run([&]() -> Awaitable<void> { space = co_await made.value()->authenticate(key); });
        return *space;
    };
    CHECK(ask().value() == "team-a");
    CHECK(seen_key == "k");
    CHECK(seen_auth == "t");
    body = R"({"namespace":"team-a","ttl":1000})";
    CHECK(ask().value() == "team-a");
    CHECK(ask().value() == "team-a");
    CHECK(asked == 2);  // the third time it was known

    body = R"({"namespace":"team-b","ttl":0})";
    CHECK(ask("other").value() == "team-b");
    status = 500;
    CHECK(ask("other").value() == "team-b");  // an old answer counts
    auto unknown = ask("third");
    REQUIRE_FALSE(unknown.has_value());
    CHECK(unknown.error().code() == ErrorCode::unavailable);
    status = 401;
    auto wrong = ask("other");
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().code() == ErrorCode::unauthenticated);
    status = 500;
    CHECK(ask("other").error().code() == ErrorCode::unavailable);  // forgotten
    status = 200;
    for (const char* garbage :
         {"", "[]", "{}", R"({"namespace":"No"})", R"({"namespace":"a","ttl":-1})"}) {
        body = garbage;
        INFO(garbage);
        CHECK(ask("fourth").error().code() == ErrorCode::unavailable);
    }
}

TEST_CASE("tenants: the provider must be there at the start where that can be known") {
    test_support::Loop loop;
    Config config;
    config.tenants.file = "/nonexistent/tenants.toml";
    CHECK_THAT(make_tenants(loop.executor(), config).error().message(),
               Contains("/nonexistent/tenants.toml"));
    config.tenants.provider = TenantProvider::http;
    config.tenants.endpoint = "http://";
    CHECK_THAT(make_tenants(loop.executor(), config).error().message(),
               Contains("tenants.endpoint"));
}

TEST_CASE("tenants: sandboxes of one are unknown to the other on every route") {
    TenantFixture f;
    auto created = f.as("key-a", "POST", "/v1/sandboxes", kCreate);
    REQUIRE(created.status == 202);
    std::string id(json::parse(created.body)->at("id").as_string());
    std::string path = "/v1/sandboxes/" + id;
    CHECK(f.as("key-a", "GET", path).status == 200);
    const std::pair<const char*, std::string> routes[] = {
        {"GET", path},
        {"GET", path + "/endpoints/44772"},
        {"GET", path + "/endpoints/0"},
        {"GET", path + "/proxy/80/"},
        {"POST", path + "/pause"},
        {"POST", path + "/snapshots"},
        {"POST", path + "/renew-expiration"},
        {"PATCH", path + "/metadata"},
        {"GET", path + "/diagnostics/logs"},
        {"GET", path + "/networkpolicy"},
        {"DELETE", path},
    };
    for (const auto& [method, target] : routes) {
        INFO(method << " " << target);
        auto foreign = f.as("key-b", method, target, "{}");
        CHECK(foreign.status == 404);
        auto unknown = target;
        unknown.replace(unknown.find(id), id.size(), "none");
        auto nobody = f.as("key-b", method, unknown, "{}");
        CHECK(nobody.status == 404);
        CHECK(nobody.code() == foreign.code());
    }
    CHECK(f.as("key-a", "GET", path).status == 200);
    CHECK_THAT(f.as("key-a", "GET", "/v1/sandboxes").body, Contains(id));
    auto theirs = f.as("key-b", "GET", "/v1/sandboxes").body;
    CHECK_THAT(theirs, !Contains(id) && Contains("\"totalItems\":0"));
}

TEST_CASE("tenants: the same Idempotency-Key of two tenants makes two sandboxes") {
    TenantFixture f;
    http::Fields key;
    key.add("Idempotency-Key", "same");
    auto a = f.as("key-a", "POST", "/v1/sandboxes", kCreate, key);
    auto b = f.as("key-b", "POST", "/v1/sandboxes", kCreate, key);
    auto again = f.as("key-a", "POST", "/v1/sandboxes", kCreate, key);
    REQUIRE(a.status == 202);
    REQUIRE(b.status == 202);
    CHECK(json::parse(a.body)->at("id") != json::parse(b.body)->at("id"));
    CHECK(json::parse(a.body)->at("id") == json::parse(again.body)->at("id"));
}

TEST_CASE(
    "tenants: keys are asked for on the proxy, too, and WebSockets are refused as they come") {
    TenantFixture f;
    auto created = f.as("key-a", "POST", "/v1/sandboxes", kCreate);
    std::string id(json::parse(created.body)->at("id").as_string());
    std::string path = "/v1/sandboxes/" + id + "/proxy/8000/x";
    http::Fields none;
    none.add("X-No-Key", "1");
    CHECK(f.send("GET", path, "", none).code() == "MISSING_API_KEY");
    CHECK(f.as("wrong", "GET", path).code() == "INVALID_API_KEY");
    CHECK(f.send("GET", "/health", "", none).status == 200);
    CHECK(f.send("GET", "/healthz", "", none).status == 401);

    auto handshake = [&](const std::string& more) {
        return f.raw(
            "GET " + path +
            " HTTP/1.1\r\nHost: h\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
            more + "\r\n");
    };
    CHECK_THAT(handshake(""), StartsWith("HTTP/1.1 401"));
    CHECK_THAT(handshake("OPEN-SANDBOX-API-KEY: wrong\r\n"), StartsWith("HTTP/1.1 401"));
    CHECK_THAT(handshake("OPEN-SANDBOX-API-KEY: key-b\r\n"), StartsWith("HTTP/1.1 404"));
    f.known->down = true;
    CHECK_THAT(handshake("OPEN-SANDBOX-API-KEY: key-a\r\n"), StartsWith("HTTP/1.1 503"));
    auto down = f.as("key-a", "GET", "/v1/sandboxes");
    CHECK(down.status == 503);
    CHECK(down.code() == "TENANT_PROVIDER_UNAVAILABLE");
}

TEST_CASE("tenants: what all share is not changed by one of them") {
    TenantFixture f;
    CHECK(f.as("key-a", "GET", "/v1/images").status == 200);
    auto upload = f.as("key-a", "POST", "/v1/images?reference=x", "tar");
    CHECK(upload.status == 403);
    CHECK(upload.code() == "IMAGE::FORBIDDEN");
    CHECK(f.as("key-a", "DELETE", "/images/x").status == 403);
}
