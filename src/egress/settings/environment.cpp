#include "egress/settings/environment.hpp"

#include "egress/intercept/pass_through_list.hpp"
#include "egress/policy/target.hpp"
#include "egress/settings/values.hpp"
#include "json/document.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

constexpr std::string_view kPrefix = "OPENSANDBOX_EGRESS_";
/// As many as one iptables rule holds: sidecars of either kind take the same values.
constexpr std::size_t kMaxInterceptPorts = 15;
constexpr std::string_view kInterceptionMode = "MITMPROXY_INTERCEPTION_MODE";

/// Reads variables one by one; keeps the warnings and the first error.
class Reader {
  public:
    explicit Reader(const EnvironmentLookup& lookup) : lookup_(lookup) {}

    /// By its full name, without white space around; "" when unset.
    [[nodiscard]] std::string get(const std::string& name) const {
        const auto value = lookup_(name);
        return value ? std::string(trim_value(*value)) : std::string();
    }
    [[nodiscard]] std::string egress(std::string_view suffix) const { return get(named(suffix)); }
    [[nodiscard]] bool truthy(std::string_view suffix) const { return is_truthy(egress(suffix)); }

    /// The number, or with a warning `fallback`.
    std::uint32_t number(std::string_view suffix, std::uint32_t first, std::uint32_t last,
                         std::uint32_t fallback) {
        const std::string text = egress(suffix);
        if (text.empty()) return fallback;
        if (const auto value = parse_number(text, first, last)) return *value;
        warn(suffix, "must be a number from " + std::to_string(first) + " to " +
                         std::to_string(last) + "; " + std::to_string(fallback) + " is used");
        return fallback;
    }

    void warn(std::string_view suffix, const std::string& what) {
        warnings_.push_back(named(suffix) + ": " + what);
    }
    void fail(std::string_view suffix, const std::string& what,
              ErrorCode code = ErrorCode::invalid_argument) {
        if (!error_) error_ = Error(code, named(suffix) + ": " + what);
    }

    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    [[nodiscard]] std::vector<std::string> warnings() { return std::move(warnings_); }

  private:
    static std::string named(std::string_view suffix) {
        return std::string(kPrefix) + std::string(suffix);
    }

    const EnvironmentLookup& lookup_;
    std::vector<std::string> warnings_;
    std::optional<Error> error_;
};

void read_policy(Reader& reader, SidecarOptions& options) {
    const std::string mode = reader.egress("MODE");
    if (!mode.empty()) {
        const auto nft = parse_mode(mode);
        if (!nft) reader.warn("MODE", "must be dns or dns+nft; dns is used");
        options.nft = nft.value_or(false);
    }
    options.rules = reader.egress("RULES");
    options.policy_file = reader.egress("POLICY_FILE");
    options.max_rules = reader.number("MAX_RULES", 0, 1'000'000'000, 4096);
    options.token = reader.egress("TOKEN");
    if (const std::string address = reader.egress("HTTP_ADDR"); !address.empty()) {
        const auto listen = parse_listen_address(address);
        if (!listen) return reader.fail("HTTP_ADDR", "must be [address]:port");
        options.http = *listen;
    }
    const std::string profile = lower_case(reader.egress("PROFILE"));
    if (profile == "fleet") {
        reader.fail("PROFILE", "fleet is not supported", ErrorCode::unsupported);
    } else if (!profile.empty() && profile != "sidecar") {
        reader.fail("PROFILE", "must be sidecar");
    }
}

void read_reports(Reader& reader, SidecarOptions& options) {
    if (const std::string text = reader.egress("LOG_LEVEL"); !text.empty()) {
        const auto level = parse_log_level(text);
        if (!level) {
            reader.warn("LOG_LEVEL", "must be debug, info, warn, error or fatal; info is used");
        }
        options.log_level = level.value_or(log::Level::info);
    }
    if (const std::string outputs = reader.get("OPENSANDBOX_LOG_OUTPUT"); !outputs.empty()) {
        options.log_outputs.clear();
        for (const std::string_view output : split_list(outputs)) {
            options.log_outputs.emplace_back(output);
        }
        if (options.log_outputs.empty()) options.log_outputs.emplace_back("stdout");
    }
    options.deny_webhook = reader.egress("DENY_WEBHOOK");
    const std::string scheme = lower_case(options.deny_webhook.substr(0, 8));
    if (!options.deny_webhook.empty() && !scheme.starts_with("http://") &&
        !scheme.starts_with("https://")) {
        reader.warn("DENY_WEBHOOK", "must be an http or https URL; no webhook is called");
        options.deny_webhook.clear();
    }
    options.sandbox_id = reader.egress("SANDBOX_ID");
    options.extra_attributes = parse_attributes(reader.egress("METRICS_EXTRA_ATTRS"));
}

void read_dns(Reader& reader, SidecarOptions& options) {
    for (const std::string_view item : split_list(reader.egress("NAMESERVER_EXEMPT"))) {
        if (const auto address = parse_literal(item)) {
            options.nameserver_exempt.push_back(*address);
        } else {
            reader.warn("NAMESERVER_EXEMPT", std::string(item) + " is no address and is ignored");
        }
    }
    const std::string upstreams = reader.egress("DNS_UPSTREAM");
    for (const std::string_view item : split_list(upstreams)) {
        const auto upstream = parse_dns_upstream(item);
        if (!upstream) {
            return reader.fail("DNS_UPSTREAM",
                               std::string(item) + ": must be a literal address or address:port");
        }
        auto& list = options.dns_upstreams;
        if (std::ranges::find(list, *upstream) == list.end()) list.push_back(*upstream);
    }
    options.dns_timeout = std::chrono::seconds(reader.number("DNS_UPSTREAM_TIMEOUT", 1, 120, 5));
    options.dns_probe_interval =
        std::chrono::seconds(reader.number("DNS_UPSTREAM_PROBE_INTERVAL_SEC", 1, 3600, 30));
    if (const std::string probe = reader.egress("DNS_UPSTREAM_PROBE"); !probe.empty()) {
        const auto name = parse_host_name(probe);
        if (!name && probe != ".") reader.warn("DNS_UPSTREAM_PROBE", "is no name; . is used");
        options.dns_probe = name ? *name : ".";
    }
    options.block_doh = reader.truthy("BLOCK_DOH_443");
    for (const std::string_view item : split_list(reader.egress("DOH_BLOCKLIST"))) {
        if (const auto block = net::AddressBlock::parse(item)) {
            options.doh_blocklist.push_back(*block);
        } else {
            reader.warn("DOH_BLOCKLIST", std::string(item) + " is no address and is ignored");
        }
    }
}

void read_intercept_ports(Reader& reader, SidecarOptions& options) {
    for (const std::string_view item : split_list(reader.egress("MITMPROXY_EXTRA_PORTS"))) {
        const auto port = parse_number(item, 1, 65535);
        if (!port) {
            return reader.fail("MITMPROXY_EXTRA_PORTS", "must be ports from 1 to 65535");
        }
        auto& ports = options.intercept_ports;
        const auto number = static_cast<std::uint16_t>(*port);
        if (std::ranges::find(ports, number) == ports.end()) ports.push_back(number);
    }
    if (options.intercept_ports.size() > kMaxInterceptPorts) {
        reader.fail("MITMPROXY_EXTRA_PORTS", "must not make more than 15 ports with 80 and 443");
    }
}

/// A JSON list of names and `*.name`, which can be compared with those of bindings.
void read_passed_hosts(Reader& reader, SidecarOptions& options) {
    constexpr std::string_view kName = "MITMPROXY_PASSTHROUGH_HOSTS";
    const std::string text = reader.egress(kName);
    if (text.empty()) return;
    const auto document = json::parse(text);
    if (!document || !document->is_array()) return reader.fail(kName, "must be a JSON list");
    for (const json::value& item : document->get_array()) {
        std::string entry = item.is_string() ? std::string(item.get_string()) : std::string();
        const auto listed = PassThroughList::make({entry}, {});
        if (!listed) return reader.fail(kName, "must be a JSON list of names and *.names");
        options.pass_through.push_back(std::move(entry));
    }
}

void read_interception_mode(Reader& reader, SidecarOptions& options) {
    const std::string mode = reader.egress(kInterceptionMode);
    if (mode.empty() || mode == "all") return;
    if (mode != "credential-bound") {
        return reader.fail(kInterceptionMode, "must be all or credential-bound");
    }
    options.credential_bound = true;
    const auto refuse = [&](const char* what) {
        reader.fail(kInterceptionMode, std::string("credential-bound ") + what);
    };
    if (!options.intercept) refuse("needs MITMPROXY_TRANSPARENT");
    if (options.upstream_insecure) refuse("does not go with MITMPROXY_SSL_INSECURE");
    if (options.intercept_ports != SidecarOptions().intercept_ports) {
        refuse("does not go with MITMPROXY_EXTRA_PORTS: TLS is read at port 443 alone");
    }
    const auto listed = pass_through_list(options.pass_through);
    if (listed && listed->has_patterns()) refuse(kPatternsMixed);
}

/// What the interceptor's own parser does not see: whether the two go with the rest.
void read_upstream_proxy(Reader& reader, SidecarOptions& options) {
    options.upstream_proxy = reader.egress("UPSTREAM_PROXY");
    options.upstream_proxy_authorization = reader.egress("UPSTREAM_PROXY_AUTH");
    if (options.upstream_proxy.empty()) {
        if (!options.upstream_proxy_authorization.empty()) {
            reader.fail("UPSTREAM_PROXY_AUTH", "needs UPSTREAM_PROXY");
        }
        return;
    }
    if (!options.intercept) reader.fail("UPSTREAM_PROXY", "needs MITMPROXY_TRANSPARENT");
}

void read_interception(Reader& reader, SidecarOptions& options) {
    options.intercept = reader.truthy("MITMPROXY_TRANSPARENT");
    options.intercept_port =
        static_cast<std::uint16_t>(reader.number("MITMPROXY_PORT", 1, 65535, 18081));
    read_intercept_ports(reader, options);
    if (!reader.egress("MITMPROXY_SCRIPT").empty()) {
        reader.fail("MITMPROXY_SCRIPT", "scripts of mitmproxy are not supported",
                    ErrorCode::unsupported);
    }
    options.pass_through = split_list(reader.egress("MITMPROXY_IGNORE_HOSTS"));
    if (const auto listed = pass_through_list(options.pass_through); !listed) {
        reader.fail("MITMPROXY_IGNORE_HOSTS", listed.error().message());
    }
    if (const std::string path = reader.egress("MITMPROXY_UPSTREAM_TRUST_DIR"); !path.empty()) {
        options.upstream_trust_directory = path;
    }
    options.upstream_insecure = reader.truthy("MITMPROXY_SSL_INSECURE");
    options.upstream_extra_ca = reader.egress("MITMPROXY_UPSTREAM_EXTRA_CA");
    read_upstream_proxy(reader, options);
    read_passed_hosts(reader, options);
    read_interception_mode(reader, options);
}

void read_vault(Reader& reader, SidecarOptions& options) {
    options.vault_requires_tls = reader.truthy("CREDENTIAL_VAULT_REQUIRE_TLS");
    options.vault_requires_scoped_match = reader.truthy("CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH");
    for (const std::string_view item :
         split_list(reader.egress("CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS"))) {
        const auto block = net::AddressBlock::parse(item);
        if (!block) {
            return reader.fail("CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS",
                               std::string(item) + ": " + block.error().message());
        }
        options.vault_trusted_proxies.push_back(*block);
    }
}

}  // namespace

Result<ParsedEnvironment> parse_environment(const EnvironmentLookup& lookup) {
    Reader reader(lookup);
    ParsedEnvironment parsed;
    read_policy(reader, parsed.options);
    read_reports(reader, parsed.options);
    read_dns(reader, parsed.options);
    read_interception(reader, parsed.options);
    read_vault(reader, parsed.options);
    if (const auto& error = reader.error()) return *error;
    constexpr const char* kSocket = "OPENSANDBOX_CREDENTIAL_PROXY_SOCKET";
    std::string ignored;
    if (const std::string path = reader.get(kSocket); !path.empty()) {
        if (path.front() != '/') {
            return Error(ErrorCode::invalid_argument,
                         std::string(kSocket) + ": must be an absolute path");
        }
        ignored = std::string(kSocket) +
                  ": the interceptor reads the vault in its own process; there is no such socket";
    }
    parsed.warnings = reader.warnings();
    if (!ignored.empty()) parsed.warnings.push_back(std::move(ignored));
    return parsed;
}

}  // namespace opensandbox::egress
