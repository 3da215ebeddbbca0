#include "egress/dns/filter_environment.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace opensandbox;
using namespace opensandbox::egress::dns;

namespace {

Status read(ProxySettings& settings, const std::map<std::string, std::string>& values) {
    return read_filter_environment(
        [&](std::string_view name) -> std::optional<std::string> {
            const std::string_view prefix = "OPENSANDBOX_EGRESS_DNS_";
            REQUIRE(name.starts_with(prefix));
            const auto found = values.find(std::string(name.substr(prefix.size())));
            if (found == values.end()) return std::nullopt;
            return found->second;
        },
        settings);
}

std::vector<std::string> upstreams(std::string_view resolv_conf) {
    std::vector<std::string> out;
    for (const auto& server : default_upstreams(resolv_conf)) {
        CHECK(server.port() == 53);
        out.push_back(server.address().to_string());
    }
    return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("dns environment: without an upstream named, those of resolv.conf are used") {
    CHECK(upstreams("nameserver 127.0.0.11\nnameserver 192.0.2.1\nnameserver ::1\n"
                    "nameserver 2001:db8::1\nnameserver 192.0.2.1\nnameserver 0.0.0.0\n") ==
          Texts{"192.0.2.1", "2001:db8::1", "127.0.0.11", "::1"});
    CHECK(upstreams("search example\n") == Texts{"8.8.8.8"});
    std::string many;
    for (int i = 1; i <= 12; ++i)
        many += "nameserver 192.0.2." + std::to_string(i) + "\n";
    CHECK(upstreams(many).size() == 10);
}

TEST_CASE("dns environment: variables that are not set leave the settings as they are") {
    ProxySettings settings;
    settings.denial = DenialAnswer::refused;
    settings.upstream.mixed_case = true;
    CHECK(read(settings, {{"RATE", " "}}));
    CHECK(settings.denial == DenialAnswer::refused);
    CHECK(settings.upstream.mixed_case);
    CHECK(settings.types == ProxySettings::default_types());
    CHECK(settings.names.label == NameLimits().label);
    CHECK(settings.clients.forwarded_burst == ClientLimits().forwarded_burst);
}

TEST_CASE("dns environment: variables that are set must be right") {
    ProxySettings settings;
    REQUIRE(read(settings, {{"DENIAL", "Refused"},
                            {"QUERY_TYPES", "a, AAAA,,type65,HTTPS"},
                            {"MAX_LABEL", "0"},
                            {"MAX_NAME", "70"},
                            {"MAX_LABELS", "9"},
                            {"MAX_DISTINCT", "30"},
                            {"RATE", "5000"},
                            {"FORWARD_RATE", "50"},
                            {"CACHE_BYTES", "1048576"},
                            {"MIXED_CASE", "Yes"}}));
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
         std::map<std::string, std::string>{{"DENIAL", "servfail"},
                                            {"QUERY_TYPES", "a,b"},
                                            {"MAX_LABEL", "-1"},
                                            {"RATE", "1e3"},
                                            {"CACHE_BYTES", "4294967296"}}) {
        CAPTURE(name);
        const Status refused = read(settings, {{name, value}});
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message().find("OPENSANDBOX_EGRESS_DNS_" + name) !=
              std::string::npos);
    }
}

TEST_CASE("dns environment: types have names and numbers") {
    CHECK(query_type("SRV") == 33);
    CHECK(query_type("TYPE257") == 257);
    for (const char* wrong : {"", "b", "type", "type0", "type65536", "type1x"})
        CHECK_FALSE(query_type(wrong));
}
