#include "egress/role/request_environment.hpp"

#include "support/catch_result.hpp"

using namespace opensandbox;
using namespace opensandbox::egress;
using Catch::Contains;

TEST_CASE("a request's variables are those of its sandbox", "[egress]") {
    const auto parsed = parse_request_environment(
        {{"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "on"},
         {"OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS", "8443"},
         {"OPENSANDBOX_EGRESS_METRICS_EXTRA_ATTRS", "team=red"},
         {"OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH", "1"}});
    REQUIRE(parsed);
    CHECK(parsed->options.intercept);
    CHECK(parsed->options.intercept_ports == std::vector<std::uint16_t>{80, 443, 8443});
    CHECK(parsed->options.extra_attributes.size() == 1);
    CHECK(parsed->options.vault_requires_scoped_match);
    CHECK(parsed->warnings.empty());
}

TEST_CASE("what the operator says holds for sandboxes whose requests say nothing", "[egress]") {
    const std::map<std::string, std::string> operators{
        {"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "on"},
        {"OPENSANDBOX_EGRESS_LOG_LEVEL", "debug"},
        {"OPENSANDBOX_EGRESS_UPSTREAM_PROXY", "http://192.0.2.1:3128"},
        {"OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_REQUIRE_TLS", "true"},
        {"OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS", "192.0.2.0/24"},
        {"OPENSANDBOX_EGRESS_DENY_WEBHOOK", "http://192.0.2.1/denied"}};
    const auto defaults =
        sandbox_defaults([&](std::string_view name) -> std::optional<std::string> {
            const auto found = operators.find(std::string(name));
            if (found == operators.end()) return std::nullopt;
            return found->second;
        });
    CHECK(defaults.size() == 3);
    const auto silent = parse_request_environment({}, defaults);
    REQUIRE(silent);
    CHECK(silent->warnings.empty());
    CHECK_FALSE(silent->options.intercept);
    CHECK(silent->options.vault_requires_tls);
    CHECK(silent->options.vault_trusted_proxies.size() == 1);
    CHECK(silent->options.deny_webhook == "http://192.0.2.1/denied");
    const auto own = parse_request_environment(
        {{"OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_REQUIRE_TLS", "false"}}, defaults);
    REQUIRE(own);
    CHECK_FALSE(own->options.vault_requires_tls);
    CHECK(own->options.vault_trusted_proxies.size() == 1);
}

TEST_CASE("what holds for the whole host is left out of a request with a warning", "[egress]") {
    const auto parsed =
        parse_request_environment({{"OPENSANDBOX_EGRESS_LOG_LEVEL", "debug"},
                                   {"OPENSANDBOX_EGRESS_DNS_UPSTREAM_TIMEOUT", "7"}});
    REQUIRE(parsed);
    CHECK(parsed->options.log_level == log::Level::info);
    CHECK(parsed->options.dns_timeout == std::chrono::seconds(5));
    REQUIRE(parsed->warnings.size() == 2);
    CHECK_THAT(parsed->warnings[0], Contains("DNS_UPSTREAM_TIMEOUT") && Contains("ignored"));
}

TEST_CASE("a request must not set what is not its own", "[egress]") {
    for (const char* name :
         {"OPENSANDBOX_EGRESS_TOKEN", "OPENSANDBOX_EGRESS_RULES", "OPENSANDBOX_EGRESS_DNS_UPSTREAM",
          "OPENSANDBOX_EGRESS_UPSTREAM_PROXY", "OPENSANDBOX_EGRESS_MITMPROXY_SCRIPT", "PATH"}) {
        const auto parsed = parse_request_environment({{name, "x"}});
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().code() == ErrorCode::invalid_argument);
        CHECK_THAT(parsed.error().message(), Contains(name));
    }
    const auto file = parse_request_environment({{"OPENSANDBOX_EGRESS_POLICY_FILE", "/p"}});
    REQUIRE_FALSE(file);
    CHECK(file.error().code() == ErrorCode::unsupported);
    CHECK_FALSE(parse_request_environment({{"OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS", "http"}}));
}

TEST_CASE("which connections are intercepted is for the request to say", "[egress]") {
    constexpr const char* kMode = "OPENSANDBOX_EGRESS_MITMPROXY_INTERCEPTION_MODE";
    const auto defaults =
        sandbox_defaults([&](std::string_view name) -> std::optional<std::string> {
            if (name == kMode) return "credential-bound";
            return std::nullopt;
        });
    CHECK(defaults.empty());
    const auto parsed = parse_request_environment(
        {{"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "1"}, {kMode, "credential-bound"}});
    REQUIRE(parsed);
    CHECK(parsed->options.credential_bound);
    // What an operator says of ports for all does not turn into something else.
    CHECK_FALSE(parse_request_environment(
        {{"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "1"}, {kMode, "credential-bound"}},
        {{"OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS", "8443"}}));
}
