#include "egress/dns/environment.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace opensandbox;
using namespace opensandbox::egress::dns;

namespace {

Result<Environment> read(std::map<std::string, std::string> values,
                         std::string_view resolv_conf = "nameserver 192.0.2.53\n") {
    return read_environment(
        [&](std::string_view name) -> std::optional<std::string> {
            const std::string_view prefix = "OPENSANDBOX_EGRESS_";
            REQUIRE(name.starts_with(prefix));
            const auto found = values.find(std::string(name.substr(prefix.size())));
            if (found == values.end()) return std::nullopt;
            return found->second;
        },
        resolv_conf);
}

std::vector<std::string> endpoints(const std::vector<UpstreamServer>& servers) {
    std::vector<std::string> out;
    for (const UpstreamServer& server : servers) {
        out.push_back(server.endpoint.address().to_string() + " " +
                      std::to_string(server.endpoint.port()));
    }
    return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("dns environment: upstreams are literal addresses") {
    const auto servers = parse_upstreams(
        " 192.0.2.1, 192.0.2.2:5353 ,[2001:db8::1],[2001:db8::2]:54,,2001:db8::3,"
        "192.0.2.1:53");
    REQUIRE(servers);
    CHECK(endpoints(*servers) == Texts{"192.0.2.1 53", "192.0.2.2 5353", "2001:db8::1 53",
                                       "2001:db8::2 54", "2001:db8::3 53"});
    for (const char* wrong :
         {"", ",", "dns.example", "dns.example:53", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536",
          "192.0.2.1:53x", "[192.0.2.1]", "[2001:db8::1", "[2001:db8::1]53",
          "[2001:db8::1]:", "0.0.0.0", "::", "192.0.2.0/24", "192.0.2.1,dns.example"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_upstreams(wrong));
    }
}

TEST_CASE("dns environment: without variables the contract's defaults hold") {
    const auto found = read({},
                            "nameserver 127.0.0.11\nnameserver 192.0.2.1\nnameserver ::1\n"
                            "nameserver 2001:db8::1\nnameserver 192.0.2.1\n");
    REQUIRE(found);
    const UpstreamSettings& upstream = found->settings.upstream;
    CHECK(endpoints(upstream.servers) ==
          Texts{"192.0.2.1 53", "2001:db8::1 53", "127.0.0.11 53", "::1 53"});
    CHECK(upstream.timeout == std::chrono::seconds(5));
    CHECK(upstream.probe == ".");
    CHECK(upstream.probe_interval == std::chrono::seconds(30));
    CHECK(found->settings.denial == DenialAnswer::no_such_name);
    CHECK(found->settings.types == ProxySettings::default_types());
    CHECK(found->exempt.empty());
    CHECK(found->warnings.empty());
    CHECK(endpoints(read({}, "")->settings.upstream.servers) == Texts{"8.8.8.8 53"});
    std::string many;
    for (int i = 1; i <= 12; ++i)
        many += "nameserver 192.0.2." + std::to_string(i) + "\n";
    CHECK(read({}, many)->settings.upstream.servers.size() == 10);
}

TEST_CASE("dns environment: the contract's variables are read, bad ones replaced with a warning") {
    const auto found = read({{"DNS_UPSTREAM", "192.0.2.9"},
                             {"DNS_UPSTREAM_TIMEOUT", "120"},
                             {"DNS_UPSTREAM_PROBE", "probe.example."},
                             {"DNS_UPSTREAM_PROBE_INTERVAL_SEC", "3600"},
                             {"NAMESERVER_EXEMPT", "192.0.2.9, 10.0.0.0/8, x, 2001:db8::9"}});
    REQUIRE(found);
    CHECK(endpoints(found->settings.upstream.servers) == Texts{"192.0.2.9 53"});
    CHECK(found->settings.upstream.timeout == std::chrono::seconds(120));
    CHECK(found->settings.upstream.probe == "probe.example.");
    CHECK(found->settings.upstream.probe_interval == std::chrono::seconds(3600));
    REQUIRE(found->exempt.size() == 2);
    CHECK(found->exempt[1].to_string() == "2001:db8::9");
    CHECK(found->warnings.empty());
    const auto bad = read({{"DNS_UPSTREAM_TIMEOUT", "121"},
                           {"DNS_UPSTREAM_PROBE", "a..b"},
                           {"DNS_UPSTREAM_PROBE_INTERVAL_SEC", "never"}});
    REQUIRE(bad);
    CHECK(bad->settings.upstream.timeout == std::chrono::seconds(5));
    CHECK(bad->settings.upstream.probe == ".");
    CHECK(bad->settings.upstream.probe_interval == std::chrono::seconds(30));
    CHECK(bad->warnings.size() == 3);
    CHECK_FALSE(read({{"DNS_UPSTREAM", "dns.example"}}));
}

TEST_CASE("dns environment: our own variables must be right") {
    const auto found = read({{"DNS_DENIAL", "Refused"},
                             {"DNS_QUERY_TYPES", "a, AAAA,type65,HTTPS"},
                             {"DNS_MAX_LABEL", "0"},
                             {"DNS_MAX_NAME", "70"},
                             {"DNS_MAX_LABELS", "9"},
                             {"DNS_MAX_DISTINCT", "30"},
                             {"DNS_RATE", "5000"},
                             {"DNS_FORWARD_RATE", "50"},
                             {"DNS_CACHE_BYTES", "1048576"},
                             {"DNS_MIXED_CASE", "Yes"}});
    REQUIRE(found);
    const ProxySettings& settings = found->settings;
    CHECK(settings.denial == DenialAnswer::refused);
    CHECK(settings.types == std::set<std::uint16_t>{1, 28, 65});
    CHECK(settings.names.label == 0);
    CHECK(settings.names.below == 70);
    CHECK(settings.names.labels == 9);
    CHECK(settings.names.distinct == 30);
    CHECK(settings.clients.queries_per_second == 5000);
    CHECK(settings.clients.queries_burst == 5000);
    CHECK(settings.clients.forwarded_per_second == 50);
    CHECK(settings.clients.forwarded_burst == 100);
    CHECK(settings.cache.bytes == 1048576);
    CHECK(settings.upstream.mixed_case);
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"DNS_DENIAL", "servfail"},
                                            {"DNS_QUERY_TYPES", "a,b"},
                                            {"DNS_MAX_LABEL", "-1"},
                                            {"DNS_RATE", "1e3"},
                                            {"DNS_CACHE_BYTES", "4294967296"}}) {
        CAPTURE(name);
        const auto refused = read({{name, value}});
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message().find("OPENSANDBOX_EGRESS_" + name) != std::string::npos);
    }
}
