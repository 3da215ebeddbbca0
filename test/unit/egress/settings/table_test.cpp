#include "egress/settings/table.hpp"

#include "egress/settings/environment.hpp"
#include "egress/settings/help.hpp"
#include "egress/settings/names.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <tuple>

using namespace opensandbox;
using namespace opensandbox::egress;

namespace {

/// What the environment that has this alone says.
Result<ParsedEnvironment> parse_alone(const std::string& variable, const std::string& value) {
    return parse_environment([&](std::string_view name) -> std::optional<std::string> {
        if (name != variable) return std::nullopt;
        return value;
    });
}

/// All that a setting with a standard is read into.
auto members(const ParsedEnvironment& parsed) {
    const SidecarOptions& o = parsed.options;
    const dns::ProxySettings& f = parsed.dns;
    return std::tuple(o.nft, o.max_rules, o.http.address.has_value(), o.http.port, o.dns_timeout,
                      o.dns_probe, o.dns_probe_interval, o.intercept_port, o.credential_bound,
                      o.upstream_trust_directory, o.log_level, o.log_outputs, f.denial,
                      f.names.label, f.names.below, f.names.labels, f.names.distinct,
                      f.clients.forwarded_per_second, f.clients.forwarded_burst);
}

std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> words(1);
    for (const char c : text) {
        const bool of_a_name = std::isupper(static_cast<unsigned char>(c)) != 0 ||
                               std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_';
        if (of_a_name) {
            words.back() += c;
        } else if (!words.back().empty()) {
            words.emplace_back();
        }
    }
    return words;
}

}  // namespace

TEST_CASE("egress settings: each is found by its variable alone", "[egress]") {
    std::set<std::string> seen;
    for (const Setting& setting : settings()) {
        CAPTURE(setting.name);
        CHECK(find_setting(setting.variable()) == &setting);
        CHECK(find_setting(setting.name) ==
              (setting.variable() == setting.name ? &setting : nullptr));
        CHECK(seen.insert(setting.variable()).second);
    }
    CHECK(find_setting("OPENSANDBOX_EGRESS_TOKEN"));
    CHECK(find_setting("OPENSANDBOX_LOG_OUTPUT"));
    for (const char* other : {"", "OPENSANDBOX_EGRESS_", "OPENSANDBOX_EGRESS_OTHER", "PATH",
                              "OPENSANDBOX_EGRESS_OPENSANDBOX_LOG_OUTPUT"}) {
        CAPTURE(other);
        CHECK_FALSE(find_setting(other));
    }
}

TEST_CASE("egress settings: what is said of the standard holds", "[egress]") {
    const auto standard = members(parse_environment([](auto) { return std::nullopt; }).value());
    for (const Setting& setting : settings()) {
        if (setting.standard.empty()) continue;
        CAPTURE(setting.name, setting.standard);
        const auto parsed = parse_alone(setting.variable(), std::string(setting.standard));
        REQUIRE(parsed);
        CHECK(parsed->warnings.empty());
        CHECK(members(*parsed) == standard);
    }
}

TEST_CASE("egress settings: help has each", "[egress]") {
    const std::string help = settings_help();
    const std::vector<std::string> named = words(help);
    for (const Setting& setting : settings()) {
        CAPTURE(setting.name);
        const auto times = std::count(named.begin(), named.end(), setting.name);
        CHECK(times == (setting.topic == SettingTopic::foreign ? 0 : 1));
    }
    CHECK_THAT(help, Catch::StartsWith("  policy        RULES (JSON), POLICY_FILE, "));
    CHECK_THAT(help,
               Catch::Contains("MODE=dns (or dns+nft: addresses, too);\n                lists of"));
    std::size_t longest = 0;
    for (std::size_t from = 0; from < help.size();) {
        const std::size_t end = help.find('\n', from);
        longest = std::max(longest, end - from);
        from = end + 1;
    }
    CHECK(longest <= 100);
}

TEST_CASE("egress settings: who may say them does not contradict itself", "[egress]") {
    for (const Setting& setting : settings()) {
        CAPTURE(setting.name);
        // Nobody but the server says what opens the API, or for whom.
        if (setting.secret) {
            CHECK(setting.request == InRequest::refused);
            CHECK(setting.configuration == InConfiguration::reserved);
        }
        // A value for all sandboxes of a host is the operator's to say.
        if (setting.request == InRequest::host_wide) {
            CHECK(setting.configuration == InConfiguration::taken);
        }
        // What the server says, the configuration does not.
        if (setting.request == InRequest::server) {
            CHECK(setting.configuration == InConfiguration::reserved);
        }
        // Names beside the prefix are of the process, not of what it guards.
        if (!setting.variable().starts_with(setting::kPrefix)) {
            CHECK(setting.request == InRequest::refused);
            CHECK(setting.configuration == InConfiguration::reserved);
        }
    }
}

TEST_CASE("egress settings: what a request may say is as listed", "[egress]") {
    std::set<std::string_view> open;
    for (const Setting& setting : settings()) {
        if (setting.is_open_to_requests()) open.insert(setting.name);
    }
    // A boundary: each that is added is one more that a sandbox's request decides.
    CHECK(open == std::set<std::string_view>{
                      "LOG_LEVEL", "DNS_UPSTREAM_TIMEOUT", "MITMPROXY_SSL_INSECURE",
                      "MITMPROXY_TRANSPARENT", "MITMPROXY_EXTRA_PORTS", "DENY_WEBHOOK",
                      "METRICS_EXTRA_ATTRS", "CREDENTIAL_VAULT_REQUIRE_TLS",
                      "CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH",
                      "CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS", "POLICY_FILE"});
}
