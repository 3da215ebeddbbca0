#include "server/auth.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

namespace {

http::RequestHead request(const std::string& target, std::optional<std::string> key = {}) {
    http::RequestHead head("GET", target);
    if (key) head.fields.add("open-sandbox-api-key", *key);
    return head;
}

int status(const http::RequestHead& head, std::string_view key = "secret") {
    auto refusal = refuse(head, key);
    return refusal ? refusal->head.status : 200;
}

}  // namespace

TEST_CASE("auth: the key opens, nothing and anything else do not") {
    REQUIRE(status(request("/v1/sandboxes", "secret")) == 200);
    REQUIRE(status(request("/v1/sandboxes")) == 401);
    REQUIRE(refuse(request("/v1/sandboxes"), "secret")->body.find("MISSING_API_KEY") !=
            std::string::npos);
    for (const char* wrong : {"Secret", "secret ", "secre", "secrett"}) {
        INFO(wrong);
        auto refusal = refuse(request("/v1/sandboxes", wrong), "secret");
        REQUIRE(refusal);
        REQUIRE(refusal->body.find("INVALID_API_KEY") != std::string::npos);
    }
    REQUIRE(status(request("/v1/sandboxes"), "") == 200);
    REQUIRE(status(request("/nope")) == 401);
}

TEST_CASE("auth: public paths are exempt exactly, not by prefix") {
    for (const char* open : {"/health", "/version", "/health?x=1", "/openapi.json"}) {
        INFO(open);
        REQUIRE(status(request(open)) == 200);
    }
    for (const char* closed :
         {"/healthz", "/health/", "/version/x", "/v1/health", "/metrics", "/", "/docsx"}) {
        INFO(closed);
        REQUIRE(status(request(closed)) == 401);
    }
}

TEST_CASE("auth: ports of sandboxes are open to whoever knows the id") {
    for (const char* open :
         {"/v1/sandboxes/abc/proxy/8080", "/sandboxes/abc/proxy/8080/",
          "/sandboxes/a%2Fb/proxy/1/x/y?z=..", "/v1/sandboxes/x/proxy/44772/ping"}) {
        INFO(open);
        REQUIRE(status(request(open)) == 200);
    }
    for (const char* closed :
         {"/v1/sandboxes/abc/proxy/80x", "/v1/sandboxes/abc/proxy/", "/v1/sandboxes/abc/proxy",
          "/v1/sandboxes//proxy/80", "/v1/v1/sandboxes/a/proxy/80", "/v2/sandboxes/a/proxy/80",
          "/sandboxes/a/proxy/80/../../../sandboxes", "/v1/sandboxes/a/b/proxy/80",
          "/v1/sandboxes/a/pr%6fxy/80", "x/sandboxes/a/proxy/80"}) {
        INFO(closed);
        REQUIRE(status(request(closed)) == 401);
    }
}

TEST_CASE("the startup guard lets nobody listen in the open without a key") {
    REQUIRE_FALSE(startup_refusal("127.0.0.1", "", ""));
    REQUIRE_FALSE(startup_refusal("::1", "", ""));
    REQUIRE_FALSE(startup_refusal("127.9.9.9", "", ""));
    REQUIRE_FALSE(startup_refusal("0.0.0.0", "key", ""));
    REQUIRE_FALSE(startup_refusal("0.0.0.0", "", "YES"));
    for (const char* host : {"0.0.0.0", "::", "192.0.2.1", "", "1270.0.0.1"}) {
        INFO(host);
        REQUIRE(startup_refusal(host, "", ""));
        REQUIRE(startup_refusal(host, "", "yes"));
    }
}
