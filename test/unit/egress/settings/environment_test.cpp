#include "egress/settings/environment.hpp"

#include "egress/settings/values.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace opensandbox::egress;
using opensandbox::ErrorCode;
using opensandbox::Result;
using opensandbox::log::Level;

namespace {

/// Names with `OPENSANDBOX_EGRESS_` left out; others begin with `=`.
using Variables = std::map<std::string, std::string>;

Result<ParsedEnvironment> parse(const Variables& variables) {
    return parse_environment([&](std::string_view name) -> std::optional<std::string> {
        constexpr std::string_view kPrefix = "OPENSANDBOX_EGRESS_";
        const std::string key = name.starts_with(kPrefix) ? std::string(name.substr(kPrefix.size()))
                                                          : "=" + std::string(name);
        const auto found = variables.find(key);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    });
}

SidecarOptions options(const Variables& variables) {
    const auto parsed = parse(variables);
    INFO((parsed ? std::string() : parsed.error().message()));
    REQUIRE(parsed.has_value());
    CHECK(parsed->warnings.empty());
    return parsed->options;
}

/// The options and the one warning.
std::pair<SidecarOptions, std::string> warned(const Variables& variables) {
    const auto parsed = parse(variables);
    REQUIRE(parsed.has_value());
    REQUIRE(parsed->warnings.size() == 1);
    return {parsed->options, parsed->warnings.front()};
}

std::string refusal(const Variables& variables, ErrorCode code = ErrorCode::invalid_argument) {
    const auto parsed = parse(variables);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code() == code);
    return parsed.error().message();
}

}  // namespace

TEST_CASE("an empty environment gives the contract's defaults") {
    for (const Variables& variables : {Variables{}, Variables{{"MODE", " "}, {"MAX_RULES", ""}}}) {
        const SidecarOptions made = options(variables);
        CHECK_FALSE(made.nft);
        CHECK(made.max_rules == 4096);
        CHECK_FALSE(made.http.address.has_value());
        CHECK(made.http.port == 18080);
        CHECK(made.token.empty());
        CHECK(made.log_level == Level::info);
        CHECK(made.log_outputs == std::vector<std::string>{"stdout"});
        CHECK(made.dns_upstreams.empty());
        CHECK(made.dns_timeout == std::chrono::seconds(5));
        CHECK(made.dns_probe == ".");
        CHECK(made.dns_probe_interval == std::chrono::seconds(30));
        CHECK_FALSE(made.block_doh);
        CHECK_FALSE(made.intercept);
        CHECK(made.intercept_port == 18081);
        CHECK(made.intercept_ports == std::vector<std::uint16_t>{80, 443});
        CHECK(made.upstream_trust_directory == "/etc/ssl/certs");
        CHECK(made.upstream_proxy.empty());
        CHECK_FALSE(made.vault_requires_tls);
    }
}

TEST_CASE("every variable is read") {
    const SidecarOptions made = options({
        {"MODE", "NFT+dns"},
        {"RULES", "{}"},
        {"POLICY_FILE", "/p.json"},
        {"HTTP_ADDR", "127.0.0.1:19000"},
        {"TOKEN", "t0ken"},
        {"MAX_RULES", "0"},
        {"LOG_LEVEL", "WARN"},
        {"=OPENSANDBOX_LOG_OUTPUT", "stderr, /var/log/e.log"},
        {"DENY_WEBHOOK", "https://hook.example/x?y=1"},
        {"SANDBOX_ID", "sb"},
        {"METRICS_EXTRA_ATTRS", "a=1, b=x=y,=2,c=,d"},
        {"NAMESERVER_EXEMPT", "10.0.0.2,fd00::2"},
        {"DNS_UPSTREAM", "1.1.1.1, 8.8.8.8:5353,[fd00::1],[fd00::2]:54,fd00::3,1.1.1.1:53"},
        {"DNS_UPSTREAM_TIMEOUT", "120"},
        {"DNS_UPSTREAM_PROBE", "Probe.Example."},
        {"DNS_UPSTREAM_PROBE_INTERVAL_SEC", "3600"},
        {"BLOCK_DOH_443", "Yes"},
        {"DOH_BLOCKLIST", "1.1.1.1,fd00::/8"},
        {"MITMPROXY_TRANSPARENT", "on"},
        {"MITMPROXY_PORT", "9999"},
        {"MITMPROXY_UPSTREAM_TRUST_DIR", "/certs"},
        {"MITMPROXY_SSL_INSECURE", "1"},
        {"MITMPROXY_EXTRA_PORTS", "8443,443"},
        {"MITMPROXY_UPSTREAM_EXTRA_CA", "/ca.pem"},
        {"MITMPROXY_IGNORE_HOSTS", "pinned.test, *.bank.test,^x"},
        {"UPSTREAM_PROXY", "https://proxy.example:3128/"},
        {"UPSTREAM_PROXY_AUTH", "Basic eDp5"},
        {"CREDENTIAL_VAULT_REQUIRE_TLS", "true"},
        {"CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS", "10.0.0.0/8,::1"},
        {"CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH", "y"},
        {"PROFILE", "Sidecar"},
    });
    CHECK(made.nft);
    CHECK(made.rules == "{}");
    CHECK(made.policy_file == "/p.json");
    CHECK(made.http.address->to_string() == "127.0.0.1");
    CHECK(made.http.port == 19000);
    CHECK(made.token == "t0ken");
    CHECK(made.max_rules == 0);
    CHECK(made.log_level == Level::warn);
    CHECK(made.log_outputs == std::vector<std::string>{"stderr", "/var/log/e.log"});
    CHECK(made.deny_webhook == "https://hook.example/x?y=1");
    CHECK(made.sandbox_id == "sb");
    CHECK(made.extra_attributes ==
          std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", "x=y"}});
    CHECK(made.nameserver_exempt.size() == 2);
    REQUIRE(made.dns_upstreams.size() == 5);
    CHECK(made.dns_upstreams[1].port == 5353);
    CHECK(made.dns_upstreams[2].port == 53);
    CHECK(made.dns_upstreams[3].address.to_string() == "fd00::2");
    CHECK(made.dns_upstreams[3].port == 54);
    CHECK(made.dns_upstreams[4].address.to_string() == "fd00::3");
    CHECK(made.dns_timeout == std::chrono::seconds(120));
    CHECK(made.dns_probe == "probe.example");
    CHECK(made.dns_probe_interval == std::chrono::seconds(3600));
    CHECK(made.block_doh);
    CHECK(made.doh_blocklist.size() == 2);
    CHECK(made.intercept);
    CHECK(made.intercept_port == 9999);
    CHECK(made.upstream_trust_directory == "/certs");
    CHECK(made.upstream_insecure);
    CHECK(made.intercept_ports == std::vector<std::uint16_t>{80, 443, 8443});
    CHECK(made.upstream_extra_ca == "/ca.pem");
    CHECK(made.pass_through == std::vector<std::string>{"pinned.test", "*.bank.test", "^x"});
    CHECK(made.upstream_proxy == "https://proxy.example:3128/");
    CHECK(made.upstream_proxy_authorization == "Basic eDp5");
    CHECK(made.vault_requires_tls);
    CHECK(made.vault_trusted_proxies.size() == 2);
    CHECK(made.vault_requires_scoped_match);
}

TEST_CASE("values with a fallback are replaced by it with a warning") {
    for (const char* mode : {"nft", "dns+", "dns,nft", "iptables", "+"}) {
        INFO(mode);
        const auto [made, warning] = warned({{"MODE", mode}});
        CHECK_FALSE(made.nft);
        CHECK_THAT(warning, Catch::StartsWith("OPENSANDBOX_EGRESS_MODE: "));
    }
    CHECK(warned({{"MAX_RULES", "-1"}}).first.max_rules == 4096);
    CHECK(warned({{"MAX_RULES", "x"}}).first.max_rules == 4096);
    CHECK(warned({{"DNS_UPSTREAM_TIMEOUT", "0"}}).first.dns_timeout == std::chrono::seconds(5));
    CHECK(warned({{"DNS_UPSTREAM_TIMEOUT", "121"}}).first.dns_timeout == std::chrono::seconds(5));
    CHECK(warned({{"DNS_UPSTREAM_PROBE_INTERVAL_SEC", "3601"}}).first.dns_probe_interval ==
          std::chrono::seconds(30));
    CHECK(warned({{"DNS_UPSTREAM_PROBE", "a..b"}}).first.dns_probe == ".");
    CHECK(warned({{"LOG_LEVEL", "loud"}}).first.log_level == Level::info);
    CHECK(warned({{"DENY_WEBHOOK", "ftp://x"}}).first.deny_webhook.empty());
    CHECK_THAT(warned({{"=OPENSANDBOX_CREDENTIAL_PROXY_SOCKET", "/run/x.sock"}}).second,
               Catch::Contains("no such socket"));
    CHECK(warned({{"NAMESERVER_EXEMPT", "10.0.0.0/8,10.0.0.2"}}).first.nameserver_exempt.size() ==
          1);
    CHECK(warned({{"DOH_BLOCKLIST", "dns.google,1.1.1.1"}}).first.doh_blocklist.size() == 1);
    CHECK(warned({{"MITMPROXY_PORT", "70000"}}).first.intercept_port == 18081);
}

TEST_CASE("values that would leave something open are refused") {
    CHECK_THAT(refusal({{"DNS_UPSTREAM", "1.1.1.1,dns.google"}}),
               Catch::StartsWith("OPENSANDBOX_EGRESS_DNS_UPSTREAM: dns.google: "));
    for (const char* upstream :
         {"1.1.1.1:0", "1.1.1.1:x", "[1.1.1.1]:53", "[fd00::1", "fe80::1%eth0"}) {
        INFO(upstream);
        CHECK_FALSE(parse({{"DNS_UPSTREAM", upstream}}).has_value());
    }
    for (const char* address : {"18080", "host:80", ":0", ":70000", "127.0.0.1", "::1"}) {
        INFO(address);
        CHECK(refusal({{"HTTP_ADDR", address}}) ==
              "OPENSANDBOX_EGRESS_HTTP_ADDR: must be [address]:port");
    }
    CHECK(options({{"HTTP_ADDR", "[::]:80"}}).http.address->is_v6());
    CHECK(options({{"HTTP_ADDR", "localhost:80"}}).http.address->to_string() == "127.0.0.1");
    CHECK_THAT(refusal({{"MITMPROXY_EXTRA_PORTS", "8443,x"}}), Catch::Contains("EXTRA_PORTS"));
    CHECK_THAT(refusal({{"MITMPROXY_EXTRA_PORTS", "1,2,3,4,5,6,7,8,9,10,11,12,13,14"}}),
               Catch::Contains("15 ports"));
    CHECK_THAT(refusal({{"CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS", "10.0.0.0/40"}}),
               Catch::Contains("TRUSTED_PROXY_CIDRS"));
    CHECK_THAT(refusal({{"=OPENSANDBOX_CREDENTIAL_PROXY_SOCKET", "run/x.sock"}}),
               Catch::Contains("absolute path"));
    CHECK_THAT(refusal({{"PROFILE", "other"}}), Catch::Contains("PROFILE"));
    CHECK_THAT(refusal({{"PROFILE", "fleet"}}, ErrorCode::unsupported), Catch::Contains("fleet"));
    CHECK_THAT(refusal({{"MITMPROXY_SCRIPT", "/x.py"}}, ErrorCode::unsupported),
               Catch::Contains("not supported"));
}

TEST_CASE("a proxy upstream needs interception") {
    CHECK_THAT(refusal({{"UPSTREAM_PROXY", "http://hunter2@p.example"}}),
               Catch::Contains("needs MITMPROXY_TRANSPARENT") && !Catch::Contains("hunter2"));
    CHECK_THAT(refusal({{"UPSTREAM_PROXY_AUTH", "Basic x"}}),
               Catch::Contains("needs UPSTREAM_PROXY") && !Catch::Contains("Basic"));
}

TEST_CASE("truth has five words") {
    for (const char* text : {"1", "true", "YES", " y ", "On"})
        CHECK(is_truthy(text));
    for (const char* text : {"", "0", "false", "no", "2", "enabled"})
        CHECK_FALSE(is_truthy(text));
}

TEST_CASE("credentials decide what is intercepted only where they can", "[egress]") {
    constexpr const char* kMode = "MITMPROXY_INTERCEPTION_MODE";
    const auto with = [&](Variables more) {
        more.emplace(kMode, "credential-bound");
        more.emplace("MITMPROXY_TRANSPARENT", "1");
        return more;
    };
    CHECK_FALSE(options({{"MITMPROXY_TRANSPARENT", "1"}}).credential_bound);
    CHECK_FALSE(options({{"MITMPROXY_TRANSPARENT", "1"}, {kMode, "all"}}).credential_bound);
    CHECK(options(with({})).credential_bound);
    CHECK(options(with({{"MITMPROXY_EXTRA_PORTS", "443"}})).credential_bound);
    CHECK(options(with({{"MITMPROXY_IGNORE_HOSTS", "a.test,*.b.test"}})).credential_bound);
    CHECK_THAT(refusal({{kMode, "some"}}), Catch::Contains("must be all or credential-bound"));
    CHECK_THAT(refusal({{kMode, "credential-bound"}}),
               Catch::Contains("needs MITMPROXY_TRANSPARENT"));
    CHECK_THAT(refusal(with({{"MITMPROXY_EXTRA_PORTS", "8443"}})), Catch::Contains("EXTRA_PORTS"));
    CHECK_THAT(refusal(with({{"MITMPROXY_SSL_INSECURE", "1"}})), Catch::Contains("SSL_INSECURE"));
    CHECK_THAT(refusal(with({{"MITMPROXY_IGNORE_HOSTS", "^bank"}})),
               Catch::Contains("PASSTHROUGH_HOSTS"));
}

TEST_CASE("hosts that are passed through are listed in JSON as well", "[egress]") {
    constexpr const char* kHosts = "MITMPROXY_PASSTHROUGH_HOSTS";
    CHECK(options({{"MITMPROXY_IGNORE_HOSTS", "^x"}, {kHosts, R"(["a.test","*.B.test"])"}})
              .pass_through == std::vector<std::string>{"^x", "a.test", "*.B.test"});
    CHECK(options({{kHosts, "[]"}}).pass_through.empty());
    for (const char* text : {"a.test", "{}", "[1]", R"(["^a"])", R"(["*"])", R"(["a.*.test"])",
                             R"(["127.0.0.1"])", R"([""])"}) {
        INFO(text);
        CHECK_THAT(refusal({{kHosts, text}}), Catch::Contains("must be a JSON list"));
    }
}
