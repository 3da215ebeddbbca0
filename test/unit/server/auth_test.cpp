#include "server/auth.hpp"

#include "base/state_directory.hpp"
#include "server/api/app.hpp"
#include "server/role/api_key.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

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

/// Sets an environment variable for one test.
struct Variable {
    Variable(const char* n, const char* value) : name(n) { ::setenv(name, value, 1); }
    ~Variable() { ::unsetenv(name); }
    const char* name;
};

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

TEST_CASE("the key comes from the environment, the configuration, or a private file") {
    test_support::ScratchDirectory scratch;
    Config config;
    auto made = resolve_api_key(config, scratch.path);
    REQUIRE(made);
    REQUIRE(made->size() == 32);
    struct stat info{};
    REQUIRE(::stat(api_key_file(scratch.path).c_str(), &info) == 0);
    REQUIRE((info.st_mode & 0777) == 0600);
    REQUIRE(*resolve_api_key(config, scratch.path) == *made);
    config.api_key = "configured";
    REQUIRE(*resolve_api_key(config, scratch.path) == "configured");
    Variable set("OPENSANDBOX_SERVER_API_KEY", "");
    REQUIRE(resolve_api_key(config, scratch.path)->empty());
}

TEST_CASE("a key file that others could read is closed, an empty one refused") {
    test_support::ScratchDirectory scratch;
    auto path = api_key_file(scratch.path);
    std::ofstream(path) << "given\n";
    ::chmod(path.c_str(), 0644);
    REQUIRE(*resolve_api_key(Config(), scratch.path) == "given");
    struct stat info{};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    REQUIRE((info.st_mode & 0777) == 0600);
    std::ofstream(path, std::ios::trunc) << "\n";
    REQUIRE_FALSE(resolve_api_key(Config(), scratch.path));
}

TEST_CASE("request ids are echoed when they are usable") {
    HexIds ids;
    auto id = [&](const char* given) {
        http::RequestHead head("GET", "/");
        head.fields.add("X-Request-ID", given);
        return choose_request_id(head, ids);
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
