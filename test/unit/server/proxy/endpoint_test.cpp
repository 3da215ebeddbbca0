#include "server/proxy/endpoint_address.hpp"
#include "server/proxy/proxy_rules.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

namespace {

/// As the Docker runtime says it, on a bridge.
model::Endpoints bridged() {
    model::Endpoints endpoints(model::AgentAddress("127.0.0.1", 40001));
    endpoints.http_port = 40002;
    endpoints.internal_host = "172.17.0.5";
    return endpoints;
}

}  // namespace

TEST_CASE("direct endpoints follow the network mode") {
    auto docker = bridged();
    CHECK(direct_endpoint(docker, "pub", "sb", 8080)->address == "pub:40002");
    CHECK_FALSE(direct_endpoint(docker, "pub", "sb", 8080)->through_agent);
    CHECK(direct_endpoint(docker, "pub", "sb", 3000)->address == "pub:40001/proxy/3000");
    CHECK(direct_endpoint(docker, "pub", "sb", 3000)->through_agent);
    CHECK(direct_endpoint(docker, "pub", "sb", 18080)->address == "pub:40001/proxy/18080");
    CHECK(direct_endpoint(docker, "pub", "sb", 44772)->address == "pub:40001/proxy/44772");

    model::Endpoints host;
    host.host_network = true;
    for (std::uint16_t port : {44772, 8080, 18080, 1}) {
        CHECK(direct_endpoint(host, "pub", "sb", port)->address == "pub:" + std::to_string(port));
    }

    model::Endpoints native(model::AgentAddress("127.0.0.1", 40001));
    CHECK(direct_endpoint(native, "pub", "sb", 44772)->address == "pub:40001/proxy/44772");
    CHECK_FALSE(direct_endpoint(native, "pub", "sb", 8080));
    CHECK_FALSE(direct_endpoint(model::Endpoints(), "pub", "sb", 44772));
}

TEST_CASE("clients that do not send headers of endpoints get the token in the path") {
    CHECK(ignores_endpoint_headers("OpenSandbox-Kotlin-SDK/1.0.0"));
    CHECK_FALSE(ignores_endpoint_headers("OpenSandbox-Kotlin-SDK/1.1.1"));
    CHECK(ignores_endpoint_headers("OpenSandbox-Python-SDK/0.1.4"));
    CHECK_FALSE(ignores_endpoint_headers("OpenSandbox-Python-SDK/0.1.5"));
    CHECK_FALSE(ignores_endpoint_headers("curl/8"));
    CHECK(with_access_path("pub:40001", "t", std::nullopt) == "pub:40001/.access/t");
    CHECK(with_access_path("pub:40001/proxy/44772", "t", 44772) ==
          "pub:40001/.access/t/proxy/44772");
    CHECK(with_access_path("eip/p:40001/proxy/3000", "t", 3000) ==
          "eip/p:40001/.access/t/proxy/3000");
}

TEST_CASE("the proxy goes to the sandbox's own address where it has one") {
    auto docker = bridged();
    CHECK(choose_route(docker, "sb", 8000, true) == ProxyRoute("172.17.0.5", 8000, false));
    CHECK(choose_route(docker, "sb", 44772, true) == ProxyRoute("172.17.0.5", 44772, true));
    // What listens on the sandbox's loopback only is reached by the agent.
    CHECK(detour(docker, *choose_route(docker, "sb", 8000, true)) ==
          ProxyRoute("127.0.0.1", 40001, true));
    CHECK_FALSE(detour(docker, ProxyRoute("127.0.0.1", 40001, true)));
}

TEST_CASE("the proxy keeps to published ports behind a sidecar and where it is told to") {
    auto docker = bridged();
    CHECK(choose_route(docker, "sb", 8000, false) == ProxyRoute("127.0.0.1", 40001, true));
    CHECK(choose_route(docker, "sb", 8080, false) == ProxyRoute("127.0.0.1", 40002, false));
    docker.egress_token = "t";
    CHECK(choose_route(docker, "sb", 18080, true) == ProxyRoute("127.0.0.1", 40001, true));
    // What a sidecar is told must not pass through the sandbox.
    docker.published.emplace_back(std::uint16_t{18080}, std::uint16_t{40003});
    CHECK(choose_route(docker, "sb", 18080, true) == ProxyRoute("127.0.0.1", 40003, false));
    CHECK(choose_route(docker, "sb", 8000, true) == ProxyRoute("127.0.0.1", 40001, true));
    CHECK(choose_route(docker, "sb", 8080, true) == ProxyRoute("127.0.0.1", 40002, false));
}

TEST_CASE("the proxy of a runtime that publishes the agent alone goes through it") {
    model::Endpoints native(model::AgentAddress("127.0.0.1", 40001));
    CHECK(choose_route(native, "sb", 8080, true) == ProxyRoute("127.0.0.1", 40001, true));
    native.internal_host = "10.77.0.2";
    CHECK(choose_route(native, "sb", 8080, true) == ProxyRoute("10.77.0.2", 8080, false));
    CHECK(choose_route(native, "sb", 44772, true) == ProxyRoute("127.0.0.1", 40001, true));
    CHECK_FALSE(choose_route(model::Endpoints(), "sb", 80, true));
}

TEST_CASE("a host that enforces for many answers for each under a path of its own") {
    model::Endpoints native(model::AgentAddress("127.0.0.1", 40001));
    native.egress_token = "t";
    native.egress_port = 41000;
    CHECK(direct_endpoint(native, "pub", "sb", 18080)->address == "pub:41000/sandboxes/sb");
    CHECK_FALSE(direct_endpoint(native, "pub", "sb", 18080)->through_agent);
    const auto route = choose_route(native, "sb", 18080, true);
    REQUIRE(route);
    CHECK(route->port == 41000);
    CHECK_FALSE(route->through_agent);
    CHECK(route_target(*route, 18080, "/policy?x=1") == "/sandboxes/sb/policy?x=1");
    CHECK_FALSE(detour(native, *route));
    CHECK(choose_route(native, "sb", 8000, true) == ProxyRoute("127.0.0.1", 40001, true));
}

TEST_CASE("in the host's network ports are the host's") {
    model::Endpoints host(model::AgentAddress("127.0.0.1", 44772));
    host.host_network = true;
    CHECK(choose_route(host, "sb", 80, true) == ProxyRoute("127.0.0.1", 80, false));
    CHECK(choose_route(host, "sb", 44772, false) == ProxyRoute("127.0.0.1", 44772, true));
    CHECK_FALSE(detour(host, ProxyRoute("127.0.0.1", 80, false)));
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
