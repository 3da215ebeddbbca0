#include "http/access_path.hpp"
#include "server/list_query.hpp"
#include "server/proxy/endpoint_address.hpp"
#include "server/proxy/proxy_rules.hpp"
#include "server/server_metrics.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

namespace {

lifecycle::ListQuery query_of(std::string_view raw) {
    auto parsed = parse_list_query(raw);
    INFO(std::string(raw));
    REQUIRE(std::holds_alternative<lifecycle::ListQuery>(parsed));
    return std::get<lifecycle::ListQuery>(parsed);
}

}  // namespace

TEST_CASE("list query: states repeat, in any case; an empty one matches nothing") {
    REQUIRE_FALSE(query_of("").states);
    auto two = query_of("state=running&state=PAUSED");
    REQUIRE(*two.states == std::vector{model::SandboxState::running, model::SandboxState::paused});
    REQUIRE(query_of("state=").states->empty());
    REQUIRE(query_of("state=Allocated").states->empty());
}

TEST_CASE("list query: metadata is decoded twice, encoded once or twice") {
    model::StringMap expected{{"tag", "a b"}, {"k", "v=w"}};
    REQUIRE(query_of("metadata=tag%3Da%2520b%26k%3Dv%253Dw").metadata == expected);
    REQUIRE(query_of("metadata=tag%3Da%2Bb%26k%3Dv%3Dw").metadata == expected);
    REQUIRE(query_of("metadata=tag=").metadata == model::StringMap{{"tag", ""}});
    REQUIRE(query_of("metadata=").metadata.empty());
}

TEST_CASE("list query: metadata without '=' is a 400 of its own") {
    auto parsed = parse_list_query("metadata=zz");
    const auto& problem = std::get<ListQueryError>(parsed);
    REQUIRE(std::get<Error>(problem).wire() == "INVALID_METADATA_FORMAT");
    REQUIRE_FALSE(parse_metadata_filter("a=1&b"));
    REQUIRE(parse_metadata_filter("a=1&&b=%zz"));
}

TEST_CASE("list query: pages out of range are 422 in the contract's shape") {
    auto parsed = parse_list_query("pageSize=500");
    const auto& errors = std::get<model::FieldErrors>(std::get<ListQueryError>(parsed));
    REQUIRE(
        model::to_json(errors) ==
        R"({"detail":[{"type":"less_than_equal","loc":["query","pageSize"],"msg":"Input should be )"
        R"(less than or equal to 200","input":"500","ctx":{"le":200}}]})");
    for (const char* bad : {"page=0", "page=-1", "page=x", "pageSize=0", "page=1.5", "pageSize="}) {
        INFO(bad);
        REQUIRE(std::holds_alternative<ListQueryError>(parse_list_query(bad)));
    }
    auto good = query_of("page=3&pageSize=200");
    REQUIRE(good.page == 3);
    REQUIRE(good.page_size == 200);
}

TEST_CASE("public host: eip, then where agents are published, then the rules of the contract") {
    auto outward = [] { return std::string("198.51.100.7"); };
    Config config;
    REQUIRE(public_host(config, false, outward) == "127.0.0.1");
    config.host = "0.0.0.0";
    REQUIRE(public_host(config, false, outward) == "127.0.0.1");
    config.publish_host = "0.0.0.0";
    REQUIRE(public_host(config, false, outward) == "198.51.100.7");
    config.host_ip = "192.0.2.1";
    REQUIRE(public_host(config, true, outward) == "192.0.2.1");
    REQUIRE(public_host(config, false, outward) == "198.51.100.7");
    config.host = "192.0.2.9";
    REQUIRE(public_host(config, true, outward) == "192.0.2.9");
    config.eip = "gw.example.com";
    REQUIRE(public_host(config, true, outward) == "gw.example.com");
}

TEST_CASE("addresses are joined with their ports") {
    REQUIRE(join_host_port("127.0.0.1", 80) == "127.0.0.1:80");
    REQUIRE(join_host_port("::1", 80) == "[::1]:80");
    REQUIRE(join_host_port("[::1]", 80) == "[::1]:80");
}

TEST_CASE("proxied endpoints follow the request's mount, or the eip's path") {
    REQUIRE(proxied_endpoint("", "h:8080", "/v1", "id", 80) == "h:8080/v1/sandboxes/id/proxy/80");
    REQUIRE(proxied_endpoint("", "h:8080", "", "id", 80) == "h:8080/sandboxes/id/proxy/80");
    REQUIRE(proxied_endpoint("https://gw/", "h", "/v1", "id", 80) == "gw/v1/sandboxes/id/proxy/80");
    REQUIRE(proxied_endpoint("https://gw/base/", "h", "/v1", "id", 80) ==
            "gw/base/sandboxes/id/proxy/80");
    REQUIRE(eip_path("https://gw/base/") == "/base");
    REQUIRE(eip_path("gw:80").empty());
}

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

TEST_CASE("client-chosen labels of metrics are bounded") {
    ServerMetrics metrics;
    metrics.record_client_create("OpenSandbox-Python-SDK/1.1.1 httpx", true, 900);
    metrics.record_client_create("curl/8", false, 1);
    for (int i = 0; i < 500; ++i) {
        metrics.record_client_create("OpenSandbox-X-SDK/" + std::to_string(i), true, 1);
    }
    metrics.record_request("BREW", "", 404, std::chrono::milliseconds(1));
    telemetry::Exposition out;
    metrics.write(out);
    REQUIRE_THAT(out.text(),
                 Catch::Contains(R"(sdk_language="python",sdk_version="1.1.1",success="true")"));
    REQUIRE_THAT(out.text(), Catch::Contains(R"(sdk_language="unknown")"));
    REQUIRE_THAT(out.text(), Catch::Contains(R"(sdk_language="other")"));
    REQUIRE_THAT(out.text(), Catch::Contains(R"(method="OTHER",route="unknown",status="404")"));
    std::size_t series = 0;
    std::string needle = "opensandbox_client_create_duration_seconds_count";
    for (auto at = out.text().find(needle); at != std::string::npos;
         at = out.text().find(needle, at + 1)) {
        ++series;
    }
    REQUIRE(series <= 66);
}
