#include "egress/settings/environment.hpp"
#include "egress/settings/values.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::dns;

namespace {

/// Values by names without OPENSANDBOX_EGRESS_DNS_.
Status read(ProxySettings& settings, const std::map<std::string, std::string>& values) {
    auto parsed = parse_environment(
        [&](std::string_view name) -> std::optional<std::string> {
            const std::string_view prefix = "OPENSANDBOX_EGRESS_DNS_";
            if (!name.starts_with(prefix)) return std::nullopt;
            const auto found = values.find(std::string(name.substr(prefix.size())));
            if (found == values.end()) return std::nullopt;
            return found->second;
        },
        settings);
    if (!parsed) return parsed.error();
    settings = std::move(parsed->dns);
    return {};
}

}  // namespace

TEST_CASE("settings of the filter: variables that are not set leave the settings as they are") {
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

TEST_CASE("settings of the filter: variables that are set must be right") {
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

TEST_CASE("settings of the filter: types have names and numbers") {
    CHECK(parse_query_type("SRV") == 33);
    CHECK(parse_query_type("TYPE257") == 257);
    for (const char* wrong : {"", "b", "type", "type0", "type65536", "type1x"})
        CHECK_FALSE(parse_query_type(wrong));
}
