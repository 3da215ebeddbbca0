#include "egress/settings/table.hpp"

#include "egress/settings/names.hpp"
#include "egress/settings/readings.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

using Topic = SettingTopic;
using Options = SidecarOptions;
using Filter = dns::ProxySettings;
using Names = dns::NameLimits;
using Operator = InConfiguration;

constexpr std::string_view without_prefix(std::string_view variable) {
    return variable.substr(setting::kPrefix.size());
}

// A setting that speaks of others comes behind them: what its value means with theirs is checked
// once all were read (environment.cpp).
constexpr Setting kSettings[]{
    {without_prefix(setting::kRules), "", "JSON", Topic::policy, InRequest::refused,
     Operator::reserved, reading::text<&Options::rules>},
    {without_prefix(setting::kPolicyFile), "", "", Topic::policy, InRequest::policy,
     Operator::reserved, reading::text<&Options::policy_file>},
    {"MAX_RULES", "4096", "", Topic::policy, InRequest::refused, Operator::taken,
     reading::number<&Options::max_rules, 0, 1'000'000'000>},
    {without_prefix(setting::kMode), "dns", "or dns+nft: addresses, too", Topic::policy,
     InRequest::refused, Operator::reserved, reading::mode},

    {"HTTP_ADDR", ":18080", "", Topic::api, InRequest::refused, Operator::reserved,
     reading::http_address},
    {without_prefix(setting::kToken), "", "", Topic::api, InRequest::refused, Operator::reserved,
     reading::text<&Options::token>, true},
    {without_prefix(setting::kSandboxId), "", "", Topic::api, InRequest::refused,
     Operator::reserved, reading::text<&Options::sandbox_id>},

    {without_prefix(setting::kDnsUpstream), "", "", Topic::names, InRequest::refused,
     Operator::taken, reading::dns_upstream},
    {"DNS_UPSTREAM_TIMEOUT", "5", "", Topic::names, InRequest::host_wide, Operator::taken,
     reading::number<&Options::dns_timeout, 1, 120>},
    {"DNS_UPSTREAM_PROBE", ".", "", Topic::names, InRequest::refused, Operator::taken,
     reading::dns_probe},
    {"NAMESERVER_EXEMPT", "", "", Topic::names, InRequest::refused, Operator::sidecar,
     reading::nameserver_exempt},
    {"DNS_UPSTREAM_PROBE_INTERVAL_SEC", "30", "", Topic::names, InRequest::refused, Operator::taken,
     reading::number<&Options::dns_probe_interval, 1, 3600>},
    {"BLOCK_DOH_443", "", "", Topic::names, InRequest::refused, Operator::taken,
     reading::truth<&Options::block_doh>},
    {"DOH_BLOCKLIST", "", "", Topic::names, InRequest::refused, Operator::taken,
     reading::doh_blocklist},

    {"DNS_DENIAL", "nxdomain", "or refused", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::denial},
    {"DNS_QUERY_TYPES", "", "", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::query_types},
    {"DNS_MAX_LABEL", "50", "", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::limit_of<&Filter::names, &Names::label>},
    {"DNS_MAX_NAME", "120", "", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::limit_of<&Filter::names, &Names::below>},
    {"DNS_MAX_LABELS", "12", "", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::limit_of<&Filter::names, &Names::labels>},
    {"DNS_MAX_DISTINCT", "100", "", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::limit_of<&Filter::names, &Names::distinct>},
    {"DNS_RATE", "", "", Topic::tunnels, InRequest::refused, Operator::taken, reading::query_rate},
    {"DNS_FORWARD_RATE", "200", "", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::forward_rate},
    {"DNS_CACHE_BYTES", "", "", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::limit_of<&Filter::cache, &dns::CacheSettings::bytes>},
    {"DNS_MIXED_CASE", "", "", Topic::tunnels, InRequest::refused, Operator::taken,
     reading::mixed_case},

    {without_prefix(setting::kTransparent), "", "", Topic::interception, InRequest::taken,
     Operator::reserved, reading::truth<&Options::intercept>},
    {"MITMPROXY_PORT", "18081", "", Topic::interception, InRequest::refused, Operator::sidecar,
     reading::number<&Options::intercept_port, 1, 65535>},
    {without_prefix(setting::kExtraPorts), "", "", Topic::interception, InRequest::taken,
     Operator::taken, reading::extra_ports},
    {"MITMPROXY_IGNORE_HOSTS", "", "names, *.names and patterns that are not intercepted",
     Topic::interception, InRequest::refused, Operator::taken, reading::ignored_hosts},
    {"MITMPROXY_PASSTHROUGH_HOSTS", "", "a JSON list of such names", Topic::interception,
     InRequest::refused, Operator::taken, reading::passed_hosts},
    {without_prefix(setting::kInterceptionMode), "all",
     "or credential-bound: of TLS only what bindings of the vault are for", Topic::interception,
     InRequest::server, Operator::reserved, reading::interception_mode},
    {"MITMPROXY_UPSTREAM_TRUST_DIR", "/etc/ssl/certs", "", Topic::interception, InRequest::refused,
     Operator::taken, reading::text<&Options::upstream_trust_directory>},
    {without_prefix(setting::kExtraCa), "", "", Topic::interception, InRequest::refused,
     Operator::taken, reading::text<&Options::upstream_extra_ca>},
    {without_prefix(setting::kInsecure), "", "", Topic::interception, InRequest::taken,
     Operator::taken, reading::truth<&Options::upstream_insecure>},
    {without_prefix(setting::kUpstreamProxy), "", "", Topic::interception, InRequest::refused,
     Operator::reserved, reading::text<&Options::upstream_proxy>},
    {without_prefix(setting::kUpstreamProxyAuth), "", "", Topic::interception, InRequest::refused,
     Operator::reserved, reading::text<&Options::upstream_proxy_authorization>, true},

    {"CREDENTIAL_VAULT_REQUIRE_TLS", "", "", Topic::vault, InRequest::taken, Operator::taken,
     reading::truth<&Options::vault_requires_tls>},
    {"CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH", "", "", Topic::vault, InRequest::taken,
     Operator::taken, reading::truth<&Options::vault_requires_scoped_match>},
    {"CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS", "", "", Topic::vault, InRequest::taken,
     Operator::taken, reading::trusted_proxies},

    {"LOG_LEVEL", "info", "", Topic::reports, InRequest::host_wide, Operator::taken,
     reading::log_level},
    {"OPENSANDBOX_LOG_OUTPUT", "stdout", "", Topic::reports, InRequest::refused, Operator::reserved,
     reading::log_outputs},
    {without_prefix(setting::kDenyWebhook), "", "", Topic::reports, InRequest::taken,
     Operator::taken, reading::deny_webhook},
    {"METRICS_EXTRA_ATTRS", "", "", Topic::reports, InRequest::taken, Operator::taken,
     reading::extra_attributes},

    {"PROFILE", "sidecar", "", Topic::foreign, InRequest::refused, Operator::taken,
     reading::profile},
    {"MITMPROXY_SCRIPT", "", "", Topic::foreign, InRequest::refused, Operator::taken,
     reading::script},
    {"OPENSANDBOX_CREDENTIAL_PROXY_SOCKET", "", "", Topic::foreign, InRequest::refused,
     Operator::reserved, reading::proxy_socket},
};

}  // namespace

std::string Setting::variable() const {
    const bool whole = name.starts_with("OPENSANDBOX_");
    return std::string(whole ? std::string_view() : setting::kPrefix) + std::string(name);
}

std::span<const Setting> settings() {
    return kSettings;
}

const Setting* find_setting(std::string_view variable) {
    const auto at = std::ranges::find(kSettings, variable, &Setting::variable);
    return at == std::end(kSettings) ? nullptr : at;
}

}  // namespace opensandbox::egress
