#include "http/access_path.hpp"
#include "server/proxy/proxy_rules.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

TEST_CASE("proxy targets are cut behind the port, raw") {
    auto cut = [](std::string_view raw) {
        auto target = split_proxy_target(raw);
        return target.prefix + " " + target.rest;
    };
    REQUIRE(cut("/v1/sandboxes/a/proxy/80/x%2Fy?q=1") == "/v1/sandboxes/a/proxy/80 /x%2Fy?q=1");
    REQUIRE(cut("/sandboxes/a/proxy/80") == "/sandboxes/a/proxy/80 ");
    REQUIRE(cut("/sandboxes/a/proxy/80?q=/a/b") == "/sandboxes/a/proxy/80 ?q=/a/b");
    REQUIRE(cut("/sandboxes/a/proxy/80//") == "/sandboxes/a/proxy/80 //");
    REQUIRE(cut("/v1/sandboxes/a%3Fb/proxy/80/") == "/v1/sandboxes/a%3Fb/proxy/80 /");
}

TEST_CASE("the agent's own port is reached directly, others through its proxy") {
    REQUIRE(route_target(ProxyRoute("h", 1, true), 44772, "/ping?x=1") == "/ping?x=1");
    REQUIRE(route_target(ProxyRoute("h", 1, true), 44772, "") == "/");
    REQUIRE(route_target(ProxyRoute("h", 1, true), 44772, "?a") == "/?a");
    REQUIRE(route_target(ProxyRoute("h", 1, true), 8080, "/a%20b") == "/proxy/8080/a%20b");
    REQUIRE(route_target(ProxyRoute("h", 1, true), 8080, "") == "/proxy/8080/");
    REQUIRE(route_target(ProxyRoute("h", 1, true), 8080, "?a") == "/proxy/8080/?a");
    REQUIRE(route_target(ProxyRoute("h", 1, false), 8080, "?a") == "/?a");
}

TEST_CASE("proxied requests lose credentials and forged origins, and gain ours") {
    http::Fields fields{{"Host", "h"},
                        {"Authorization", "a"},
                        {"cookie", "c"},
                        {"OPEN-SANDBOX-API-KEY", "k"},
                        {"opensandbox-secure-access", "s"},
                        {"Forwarded", "f"},
                        {"X-Forwarded-For", "6.6.6.6"},
                        {"X-Forwarded-Host", "evil"},
                        {"X-Forwarded-Port", "1"},
                        {"X-Forwarded-Proto", "https"},
                        {"X-Real-IP", "6.6.6.6"},
                        {"OpenSandbox-Access-Renew", "skip"},
                        {"OPENSANDBOX-EGRESS-AUTH", "kept"},
                        {"Accept-Encoding", "gzip"}};
    Origination from;
    from.host = "public:8080";
    from.client = "127.0.0.1";
    edit_proxy_request(fields, ProxyRoute("h", 1, true), 8080, "token", from);
    std::string text;
    for (const auto& [name, value] : fields)
        text += name + "=" + value + ";";
    REQUIRE(text ==
            "OPENSANDBOX-EGRESS-AUTH=kept;Accept-Encoding=gzip;Host=127.0.0.1:8080;X-Forwarded-"
            "Proto=http;"
            "X-Forwarded-Host=public:8080;X-Forwarded-For=127.0.0.1;X-EXECD-ACCESS-TOKEN=token;");
}

TEST_CASE("the agent's token is added only where the server may vouch") {
    Origination stranger;
    Origination trusted;
    trusted.authorized = true;
    auto token = [](std::uint16_t port, const Origination& from, const char* given) {
        http::Fields fields;
        if (given) fields.add("x-execd-access-token", given);
        edit_proxy_request(fields, ProxyRoute("h", 1, true), port, "real", from);
        return std::string(fields.get(http::kAccessTokenField).value_or("-"));
    };
    CHECK(token(44772, stranger, nullptr) == "-");
    CHECK(token(44772, stranger, "theirs") == "theirs");
    CHECK(token(44772, trusted, nullptr) == "real");
    CHECK(token(44772, trusted, "theirs") == "theirs");
    CHECK(token(8080, stranger, nullptr) == "real");
    CHECK(token(8080, stranger, "theirs") == "real");
}

TEST_CASE("only locations on the same host are rewritten") {
    auto rewritten = [](const char* location) {
        http::Fields fields{{"Location", location}};
        rewrite_location(fields, "/v1/sandboxes/a/proxy/80");
        return std::string(*fields.get("Location"));
    };
    REQUIRE(rewritten("/login?x=1") == "/v1/sandboxes/a/proxy/80/login?x=1");
    REQUIRE(rewritten("/") == "/v1/sandboxes/a/proxy/80/");
    REQUIRE(rewritten("//other/x") == "//other/x");
    REQUIRE(rewritten("http://other/x") == "http://other/x");
    REQUIRE(rewritten("relative") == "relative");
}
