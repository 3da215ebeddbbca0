#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using Catch::Contains;
using test_support::Answer;
using test_support::AppFixture;

namespace {

http::Fields no_key() {
    return {{"X-No-Key", "1"}};
}

}  // namespace

TEST_CASE("routes: health and version are bare and open") {
    AppFixture f;
    auto health = f.send("GET", "/health", "", no_key());
    REQUIRE(health.status == 200);
    REQUIRE(health.body == R"({"status":"healthy"})");
    REQUIRE(f.send("GET", "/version", "", no_key()).status == 200);
    REQUIRE(f.send("GET", "/v1/health", "", no_key()).status == 401);
    REQUIRE(f.get("/v1/health").status == 404);
    REQUIRE(f.send("POST", "/metrics/events", "{}").status == 404);
}

TEST_CASE("routes: unknown paths, wrong methods and slashes too many") {
    AppFixture f;
    auto unknown = f.get("/v1/nope");
    REQUIRE(unknown.status == 404);
    REQUIRE(unknown.body == R"({"detail":"Not Found"})");
    REQUIRE(f.send("GET", "/v1/nope", "", no_key()).status == 401);
    auto wrong = f.send("PUT", "/v1/sandboxes");
    REQUIRE(wrong.status == 405);
    REQUIRE(wrong.body == R"({"detail":"Method Not Allowed"})");
    REQUIRE_THAT(wrong.field("Allow"), Contains("GET") && Contains("POST"));
    auto options = f.send("OPTIONS", "/sandboxes/x/proxy/80/a");
    REQUIRE(options.status == 405);
    REQUIRE(options.field("Allow") == "GET, DELETE, POST, PUT, PATCH");
    auto slash = f.get("/v1/sandboxes/?page=2");
    REQUIRE(slash.status == 307);
    REQUIRE(slash.body.empty());
    REQUIRE(slash.field("Location") ==
            "http://127.0.0.1:" + std::to_string(f.web->port) + "/v1/sandboxes?page=2");
}

TEST_CASE("every answer carries a request id and Vary") {
    AppFixture f;
    for (const char* target : {"/health", "/v1/nope", "/v1/sandboxes", "/v1/sandboxes?page=0"}) {
        INFO(target);
        auto answer = f.send("GET", target, "", {{"X-Request-ID", " mine "}});
        REQUIRE(answer.field("X-Request-ID") == "mine");
        REQUIRE(answer.field("Vary") == "Origin");
        REQUIRE(answer.fields.has("Date"));
    }
    REQUIRE(f.send("GET", "/v1/sandboxes", "", no_key()).field("X-Request-ID").size() == 32);
}

TEST_CASE("cross-origin requests are answered, preflights without a key") {
    AppFixture f;
    auto preflight = f.send("OPTIONS", "/v1/sandboxes", "",
                            {{"X-No-Key", "1"},
                             {"Origin", "http://page"},
                             {"Access-Control-Request-Method", "POST"},
                             {"Access-Control-Request-Headers", "x-a"}});
    REQUIRE(preflight.status == 200);
    REQUIRE(preflight.body == "OK");
    REQUIRE(preflight.field("Access-Control-Allow-Origin") == "http://page");
    REQUIRE(preflight.field("Access-Control-Allow-Headers") == "x-a");
    REQUIRE(preflight.field("Access-Control-Max-Age") == "600");
    REQUIRE(f.send("OPTIONS", "/v1/sandboxes", "", no_key()).status == 401);
    auto plain = f.send("GET", "/v1/sandboxes", "", {{"Origin", "http://page"}});
    REQUIRE(plain.field("Access-Control-Allow-Credentials") == "true");
    REQUIRE(plain.field("Access-Control-Expose-Headers") == "OPEN-SANDBOX-ORIGIN");
    REQUIRE_FALSE(f.get("/v1/sandboxes").fields.has("Access-Control-Allow-Origin"));
}

TEST_CASE("a sandbox is created, read, listed and deleted, bare and under /v1") {
    AppFixture f;
    auto created =
        f.send("POST", "/v1/sandboxes",
               R"({"image":{"uri":"host"},"entrypoint":["tail -f /dev/null"],"timeout":60,)"
               R"("resourceLimits":{"cpu":"1"},"metadata":{"team":"x"}})");
    REQUIRE(created.status == 202);
    REQUIRE_FALSE(created.fields.has("Location"));
    REQUIRE(created.body.find("null,") == std::string::npos);
    auto body = json::parse(created.body).value();
    std::string id(body.at("id").as_string());
    REQUIRE(body.at("status").at("state") == "Running");
    REQUIRE(body.at("entrypoint").as_array().size() == 3);
    REQUIRE_FALSE(body.as_object().contains("image"));
    for (const char* mount : {"/v1", ""}) {
        auto one = f.get(std::string(mount) + "/sandboxes/" + id);
        REQUIRE(one.status == 200);
        REQUIRE(json::parse(one.body)->at("image").at("uri") == "host");
        auto list = f.get(std::string(mount) + "/sandboxes?state=running&metadata=team%3Dx");
        REQUIRE(json::parse(list.body)->at("items").as_array().size() == 1);
    }
    auto removed = f.send("DELETE", "/v1/sandboxes/" + id);
    REQUIRE(removed.status == 204);
    REQUIRE(removed.body.empty());
    auto gone = f.get("/v1/sandboxes/" + id);
    REQUIRE(gone.status == 404);
    REQUIRE(gone.code() == "NATIVE::SANDBOX_NOT_FOUND");
    REQUIRE(f.send("DELETE", "/v1/sandboxes/" + id).status == 404);
}

TEST_CASE("bad creates are answered in the contract's statuses and leave nothing") {
    AppFixture f;
    const std::string limits =
        R"("image":{"uri":"x"},"entrypoint":["a"],"timeout":60,"resourceLimits":)";
    auto post = [&](const std::string& body) { return f.send("POST", "/v1/sandboxes", body); };
    REQUIRE(post("{}").status == 422);
    REQUIRE(post("{").status == 422);
    REQUIRE(post("").status == 422);
    auto cpu = post("{" + limits + R"({"cpu":"zz"}})");
    REQUIRE(cpu.status == 400);
    REQUIRE(cpu.code() == "SANDBOX::INVALID_PARAMETER");
    REQUIRE(post("{" + limits + R"({},"metadata":{"opensandbox.io/x":"1"}})").code() ==
            "SANDBOX::INVALID_METADATA_LABEL");
    REQUIRE(post("{" + limits + R"({},"snapshotId":""})").status == 202);
    auto large = post(std::string(8 * 1024 * 1024 + 1, ' '));
    REQUIRE(large.status == 413);
    REQUIRE_THAT(large.body, Contains("\"code\"") && Contains("\"message\""));
    f.runtime.create_error =
        Error(ErrorCode::not_found, "NATIVE::SANDBOX_IMAGE_PULL_FAILED", "unknown 'x'");
    auto unknown = post("{" + limits + "{}}");
    REQUIRE(unknown.status == 500);
    REQUIRE(unknown.code() == "NATIVE::SANDBOX_IMAGE_PULL_FAILED");
    REQUIRE(f.life->index().size() == 1);
}

TEST_CASE("an Idempotency-Key makes one sandbox") {
    AppFixture f;
    std::string body = R"({"image":{"uri":"x"},"entrypoint":["a"],"resourceLimits":{}})";
    http::Fields key{{"Idempotency-Key", "k1"}};
    auto first = f.send("POST", "/v1/sandboxes", body, key);
    auto again = f.send("POST", "/v1/sandboxes", body, key);
    REQUIRE(again.status == 202);
    REQUIRE(again.body == first.body);
    auto other = f.send("POST", "/v1/sandboxes", body + " ", key);
    REQUIRE(other.status == 409);
    REQUIRE(other.code() == "IDEMPOTENCY_KEY_REUSED");
    auto bad = f.send("POST", "/v1/sandboxes", body, {{"Idempotency-Key", "a b"}});
    REQUIRE(bad.status == 400);
    REQUIRE(f.life->index().size() == 1);
}

TEST_CASE("renew and metadata over HTTP") {
    AppFixture f;
    std::string one = "/v1/sandboxes/" + f.make();
    auto renewed =
        f.send("POST", one + "/renew-expiration", R"({"expiresAt":"2099-01-01T02:00:00+02:00"})");
    REQUIRE(renewed.status == 200);
    REQUIRE(renewed.body == R"({"expiresAt":"2099-01-01T00:00:00Z"})");
    auto past =
        f.send("POST", one + "/renew-expiration", R"({"expiresAt":"2020-01-01T00:00:00Z"})");
    REQUIRE(past.status == 400);
    REQUIRE(past.code() == "NATIVE::INVALID_EXPIRATION");
    REQUIRE(f.send("POST", one + "/renew-expiration", "{}").status == 422);
    REQUIRE(f.send("POST", "/v1/sandboxes/none/renew-expiration",
                   R"({"expiresAt":"2020-01-01T00:00:00Z"})")
                .status == 404);
    auto patched = f.send("PATCH", one + "/metadata", R"({"env":"stage"})");
    REQUIRE(patched.status == 200);
    REQUIRE(json::parse(patched.body)->at("metadata").at("env") == "stage");
    REQUIRE(f.send("PATCH", one + "/metadata", R"({"env":1})").status == 422);
    REQUIRE(f.send("PATCH", "/v1/sandboxes/none/metadata", "{}").status == 404);
}

TEST_CASE("endpoints: the agent directly, everything else through this server") {
    AppFixture f;
    f.runtime.agent = runtime::AgentAddress("10.0.0.1", 41000);
    std::string id = f.make();
    std::string token = f.life->agent(id)->token;
    std::string host = "127.0.0.1:" + std::to_string(f.web->port);
    auto agent = f.get("/v1/sandboxes/" + id + "/endpoints/44772?use_server_proxy=false");
    REQUIRE(agent.status == 200);
    REQUIRE(agent.body == R"({"endpoint":"127.0.0.1:41000/proxy/44772",)"
                          R"("headers":{"X-EXECD-ACCESS-TOKEN":")" +
                              token + "\"}}");
    REQUIRE(f.get("/v1/sandboxes/" + id + "/endpoints/44772?use_server_proxy=true").body ==
            R"({"endpoint":")" + host + "/v1/sandboxes/" + id +
                R"(/proxy/44772","headers":{"X-EXECD-ACCESS-TOKEN":")" + token + "\"}}");
    REQUIRE(f.get("/sandboxes/" + id + "/endpoints/18080").body ==
            R"({"endpoint":")" + host + "/sandboxes/" + id + R"(/proxy/18080"})");
    f.config.eip = "https://gw.example.com/base/";
    REQUIRE(f.get("/v1/sandboxes/" + id + "/endpoints/8080").body ==
            R"({"endpoint":"gw.example.com/base/sandboxes/)" + id + R"(/proxy/8080"})");
}

TEST_CASE("endpoints: bad requests are refused before the sandbox is looked for") {
    AppFixture f;
    auto at = [&](const std::string& rest) {
        return f.get("/v1/sandboxes/none/endpoints/" + rest);
    };
    REQUIRE(at("99999").code() == "NATIVE::INVALID_PORT");
    REQUIRE(at("99999").status == 400);
    REQUIRE(at("0").status == 400);
    REQUIRE(at("abc").status == 422);
    REQUIRE(at("80?use_server_proxy=perhaps").status == 422);
    REQUIRE(at("80?expires=x").status == 422);
    REQUIRE(at("80?expires=9&use_server_proxy=true").code() == "SANDBOX::INVALID_PARAMETER");
    REQUIRE(at("80?expires=9").code() == "SANDBOX::API_NOT_SUPPORTED");
    REQUIRE(at("80").status == 404);
}

TEST_CASE("endpoints stay for sandboxes that ended") {
    AppFixture f;
    f.runtime.agent = runtime::AgentAddress("10.0.0.1", 41000);
    std::string id = f.make();
    f.runtime.listener(id, runtime::Exit());
    f.until([&] { return f.status(id).state == model::SandboxState::terminated; });
    REQUIRE(f.get("/v1/sandboxes/" + id + "/endpoints/44772").status == 200);
}

TEST_CASE("what is missing says so") {
    AppFixture f;
    std::string id = f.make();
    const std::tuple<const char*, std::string, const char*> table[] = {
        {"POST", "/v1/pools", "KUBERNETES::POOL_NOT_SUPPORTED"},
        {"GET", "/pools/x", "KUBERNETES::POOL_NOT_SUPPORTED"},
        {"GET", "/v1/templates", "FSB::API_NOT_SUPPORTED"},
        {"GET", "/v1/snapshots", "SNAPSHOT::NOT_IMPLEMENTED"},
        {"POST", "/v1/sandboxes/" + id + "/snapshots", "SNAPSHOT::NOT_IMPLEMENTED"},
        {"POST", "/v1/sandboxes/" + id + "/pause", "SANDBOX::API_NOT_SUPPORTED"},
        {"POST", "/v1/sandboxes/" + id + "/resume", "SANDBOX::API_NOT_SUPPORTED"},
        {"POST", "/v1/sandboxes/" + id + "/fork", "SANDBOX::API_NOT_SUPPORTED"},
    };
    for (const auto& [method, target, code] : table) {
        INFO(target);
        auto answer = f.send(method, target);
        CHECK(answer.status == 501);
        CHECK(answer.code() == code);
    }
    REQUIRE(f.send("POST", "/v1/sandboxes/none/pause").status == 404);
}

TEST_CASE("metrics: events are counted, the page needs no key on this machine") {
    AppFixture f;
    f.make();
    auto event = f.send("POST", "/v1/metrics/events",
                        R"({"eventType":"sandbox.create","createDurationMs":920,"success":true})",
                        {{"User-Agent", "OpenSandbox-Python-SDK/1.1.1"}});
    REQUIRE(event.status == 204);
    REQUIRE(
        f.send("POST", "/v1/metrics/events", R"({"eventType":"x","createDurationMs":-1})").status ==
        422);
    auto page = f.send("GET", "/metrics", "", no_key());
    REQUIRE(page.status == 200);
    REQUIRE_THAT(page.field("Content-Type"), Contains("version=0.0.4"));
    for (const char* line :
         {"opensandbox_sandboxes{state=\"Running\"} 1", "opensandbox_slots_ready 3",
          "route=\"/v1/sandboxes\",status=\"202\"", "sdk_version=\"1.1.1\"",
          "opensandbox_sandbox_create_duration_seconds_count{success=\"true\"} 1",
          "process_open_fds", "process_resident_memory_bytes"}) {
        INFO(line);
        CHECK_THAT(page.body, Contains(line));
    }
}

TEST_CASE("past the limit of concurrency the answer is 503") {
    AppFixture f;
    server::RoomLimits limits;
    limits.control = 1;
    f.rooms->set_limits(limits);
    f.runtime.hold = std::make_shared<net::Latch>(f.loop.executor());
    bool ended = false;
    auto waiting = [&]() -> Awaitable<void> {
        const std::string body = R"({"image":{"uri":"x"},"entrypoint":["a"],"resourceLimits":{}})";
        auto text = co_await http::test::talk(
            f.web->port,
            "POST /v1/sandboxes HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
            "OPEN-SANDBOX-API-KEY: secret\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
        CHECK_THAT(text, Contains(" 202 "));
        ended = true;
    };
    net::spawn(f.loop.executor(), waiting(), "waiting create");
    f.until([&] { return !f.runtime.specs.empty(); });
    auto refused = f.get("/v1/sandboxes");
    CHECK(refused.status == 503);
    CHECK(refused.body == "Service Unavailable");
    CHECK(f.get("/health").status == 200);
    f.runtime.hold->open();
    f.until([&] { return ended; });
    REQUIRE(f.get("/v1/sandboxes").status == 200);
}

TEST_CASE("a page without an origin of its own reads nothing of the API without a key") {
    AppFixture f;
    http::Fields opaque{{"Origin", "null"}, {"X-No-Key", "1"}};
    for (const char* target : {"/v1/sandboxes", "/openapi.json", "/docs", "/health"}) {
        INFO(target);
        CHECK_FALSE(f.send("GET", target, "", opaque).fields.has("Access-Control-Allow-Origin"));
    }
    // One that was given a key may.
    auto keyed = f.send("GET", "/v1/sandboxes", "", {{"Origin", "null"}});
    CHECK(keyed.status == 200);
    CHECK(keyed.field("Access-Control-Allow-Origin") == "null");
    // What sandboxes answer their own pages may read.
    auto own = f.send("GET", "/v1/sandboxes/none/proxy/80/", "", opaque);
    CHECK(own.field("Access-Control-Allow-Origin") == "null");
    AppFixture open("");
    for (const char* method : {"GET", "POST"}) {
        auto refused = open.send(method, "/v1/sandboxes", "{}", opaque);
        CHECK(refused.status == 403);
        CHECK(refused.code() == "OPAQUE_ORIGIN");
        CHECK_FALSE(refused.fields.has("Access-Control-Allow-Origin"));
    }
}

TEST_CASE("without a key configured everybody may ask") {
    AppFixture f("");
    REQUIRE(f.send("GET", "/v1/sandboxes", "", no_key()).status == 200);
}

TEST_CASE("images: listed, imported as a stream, refused with the reason, removed") {
    AppFixture f;
    auto list = f.get("/v1/images");
    REQUIRE(list.status == 200);
    REQUIRE_THAT(list.body, Contains("\"items\""));
    REQUIRE(f.send("POST", "/v1/images").status == 422);
    auto bad_name = f.send("POST", "/v1/images?reference=UPPER%20case", "x");
    REQUIRE(bad_name.status == 400);
    // Larger than what the pipe holds, so that the refusal comes while the upload still runs.
    auto garbage = f.send("POST", "/v1/images?reference=x", std::string(12 << 20, 'g'));
    REQUIRE(garbage.status == 400);
    REQUIRE_THAT(garbage.code(), Catch::StartsWith("IMAGE::"));
    auto unknown = f.send("DELETE", "/v1/images/no/such:image");
    REQUIRE(unknown.status == 404);
    REQUIRE(unknown.code() == "IMAGE::NOT_FOUND");
    REQUIRE(f.get("/images").body == list.body);
}

TEST_CASE("request ids are echoed when they are usable") {
    HexIds ids;
    auto id = [&](const char* given) {
        http::RequestHead head("GET", "/");
        head.fields.add("X-Request-ID", given);
        return server::choose_request_id(head, ids);
    };
    REQUIRE(id("abc-1") == "abc-1");
    REQUIRE(id("  abc  ") == "abc");
    std::string too_long(129, 'a');
    for (const char* bad : {"", "   ", "a b", "\xff", too_long.c_str()}) {
        INFO(bad);
        std::string made = id(bad);
        REQUIRE(made.size() == 32);
        REQUIRE(made.find_first_not_of("0123456789abcdef") == std::string::npos);
    }
}

TEST_CASE("quota: a create beyond it is answered 429 with the figures") {
    AppFixture f;
    f.config.quota.max_sandboxes = 1;
    f.make();
    auto refused = f.send("POST", "/v1/sandboxes",
                          R"({"image":{"uri":"host"},"entrypoint":["sleep","1"],"timeout":600,)"
                          R"("resourceLimits":{}})");
    CHECK(refused.status == 429);
    CHECK(refused.code() == "SANDBOX::QUOTA_EXCEEDED");
    CHECK(refused.field("Retry-After") == "5");
    CHECK_THAT(refused.body, Contains("max_sandboxes = 1"));
}
