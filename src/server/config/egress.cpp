#include "egress/settings/environment.hpp"
#include "egress/settings/names.hpp"
#include "egress/settings/table.hpp"
#include "server/config/egress_settings.hpp"
#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

namespace setting = egress::setting;

using runtime::EgressSidecarOptions;
using runtime::kubernetes::KubernetesOptions;

/// False for a name that no setting has: it may be for a later sidecar.
bool is_reserved(std::string_view name) {
    const egress::Setting* known = egress::find_setting(name);
    return known && known->configuration == egress::InConfiguration::reserved;
}

std::optional<std::string> find(const std::vector<std::pair<std::string, std::string>>& given,
                                std::string_view name) {
    for (const auto& [key, value] : given) {
        if (key == name) return value;
    }
    return std::nullopt;
}

/// A wrong value must not be found out with the first sandbox.
Status check(const std::vector<std::pair<std::string, std::string>>& given) {
    const auto lookup = [&](std::string_view name) { return find(given, name); };
    auto parsed = egress::parse_environment(lookup);
    if (!parsed) return parsed.error();
    if (!parsed->warnings.empty()) {
        return Error(ErrorCode::invalid_argument, parsed->warnings.front());
    }
    return {};
}

void read_egress_environment(ConfigReader& reader, Config& config) {
    const std::string section = "egress.environment";
    const toml::node* node = reader.node(section);
    if (!node) return;
    const toml::table* table = node->as_table();
    if (!table) return reader.fail(section, "must be a table");
    for (const auto& [key, value] : *table) {
        const std::string name(key.str());
        const auto text = value.value_exact<std::string>();
        if (!text) {
            reader.fail(section + "." + name, "must be text");
        } else if (!name.starts_with(setting::kPrefix) || is_reserved(name)) {
            reader.fail(section + "." + name,
                        "must begin with OPENSANDBOX_EGRESS_ and be none that the server sets");
        } else {
            config.sidecar.environment.emplace_back(name, *text);
        }
    }
    if (auto s = check(config.sidecar.environment); !s) reader.fail(section, s.error().message());
}

/// What a sidecar has and the host, which guards all native sandboxes, has not.
void refuse_settings_of_sidecars(ConfigReader& reader, Config& config) {
    if (config.runtime != RuntimeType::native) return;
    for (const auto& [name, value] : config.sidecar.environment) {
        const egress::Setting* known = egress::find_setting(name);
        if (known && known->configuration == egress::InConfiguration::sidecar) {
            reader.fail("egress.environment." + name,
                        "must be absent; the native runtime has no sidecars");
        }
    }
}

constexpr std::array kEnvironmentKeys{
    keys::irregular("OPENSANDBOX_EGRESS_DNS_UPSTREAM", R"("192.0.2.53")"),
    keys::irregular("OPENSANDBOX_EGRESS_BLOCK_DOH_443", R"("true")"),
    keys::irregular("OPENSANDBOX_EGRESS_DENY_WEBHOOK", R"("http://127.0.0.1:9000/denied")",
                    "What a request may set in its env as well holds for the requests that do "
                    "not."),
};

/// "dns", "dns+nft", or empty: nothing was said.
bool is_mode(std::string_view text) {
    return text.empty() || text == "dns" || text == "dns+nft";
}

/// http(s)://host[:port] and nothing else, or empty.
bool is_proxy_url(std::string_view url) {
    for (std::string_view scheme : {"http://", "https://"}) {
        if (!url.starts_with(scheme)) continue;
        std::string_view rest = url.substr(scheme.size());
        return !rest.empty() && rest.find_first_of("/?#@ ") == std::string_view::npos;
    }
    return url.empty();
}

constexpr std::array kEgressKeys{
    keys::text<&Config::sidecar, &EgressSidecarOptions::image>("image", ""),
    keys::text<&Config::sidecar, &EgressSidecarOptions::mode>(
        "mode",
        "The rest is for docker and kubernetes: what its sidecars judge (\"dns\": names alone, "
        "\"dns+nft\": "
        "addresses, too, as for native sandboxes always; without this line \"dns\" where `image` "
        "names another program), and where they send metrics.")
        .like(R"("dns+nft")")
        .must(is_mode, "must be dns or dns+nft"),
    keys::flag<&Config::sidecar, &EgressSidecarOptions::disable_ipv6>("disable_ipv6", ""),
    keys::seconds<&Config::sidecar, &EgressSidecarOptions::readiness_timeout>(
        "readiness_timeout_seconds", ""),
    keys::text<&Config::sidecar, &EgressSidecarOptions::otlp_endpoint>("otlp_endpoint", "")
        .like(R"("http://127.0.0.1:4318")"),
    keys::value<keys::read_texts_table, &Config::kubernetes, &KubernetesOptions::egress_requests>(
        "requests", "With kubernetes: resources of the sidecar's container.")
        .like(R"({ cpu = "50m" })"),
    keys::value<keys::read_texts_table, &Config::kubernetes, &KubernetesOptions::egress_limits>(
        "limits", "")
        .like(R"({ memory = "128Mi" })"),
};

constexpr std::array kUpstreamProxyKeys{
    keys::text<&Config::sidecar, &EgressSidecarOptions::upstream_proxy_url>("url", "")
        .like(R"("http://proxy.example:3128")")
        .must(is_proxy_url, "must be http(s)://host[:port]"),
    keys::text<&Config::sidecar, &EgressSidecarOptions::upstream_proxy_authorization>(
        "authorization", "")
        .like(R"("Basic …")"),
    keys::text<&Config::sidecar, &EgressSidecarOptions::upstream_proxy_ca_cert_path>(
        "ca_cert_path",
        "PEM file of an authority that servers are checked with, besides the system's; everybody "
        "must be able to read it.")
        .like(R"("/etc/opensandbox/upstream-ca.pem")"),
};

void check_upstream_proxy(ConfigReader& reader, Config& config) {
    if (!config.sidecar.upstream_proxy_url.empty() &&
        runtime::egress_mode_of(config.sidecar) != "dns+nft") {
        reader.fail("egress.upstream_proxy.url", "needs egress.mode = \"dns+nft\"");
    }
}

}  // namespace

constinit const Section kEgressSection{
    .name = "egress",
    .comment =
        "What sandboxes with a networkPolicy reach is controlled by the host (native), or "
        "by a sidecar of each (docker, kubernetes): this program, unless `image` names another.",
    .keys = kEgressKeys};
constinit const Section kUpstreamProxySection{
    .name = "egress.upstream_proxy",
    .comment = "Intercepted requests leave through this proxy; sandboxes then need interception.",
    .keys = kUpstreamProxyKeys,
    .read = check_upstream_proxy};
constinit const Section kEgressEnvironmentSection{
    .name = "egress.environment",
    .comment = "Anything else, by the variables of `opensandbox egress` (specs/egress.yaml).",
    .keys = kEnvironmentKeys,
    .read = read_egress_environment,
    .check = refuse_settings_of_sidecars};

std::vector<std::pair<std::string, std::string>> native_egress_settings(const Config& config) {
    auto out = config.sidecar.environment;
    const EgressSidecarOptions& options = config.sidecar;
    const auto add = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) out.emplace_back(name, value);
    };
    add(setting::kMode, "dns+nft");
    // Which sandboxes are intercepted is for their requests to say.
    if (!options.upstream_proxy_url.empty()) add(setting::kTransparent, "true");
    add(setting::kUpstreamProxy, options.upstream_proxy_url);
    add(setting::kUpstreamProxyAuth, options.upstream_proxy_authorization);
    add(setting::kExtraCa, options.upstream_proxy_ca_cert_path);
    return out;
}

}  // namespace opensandbox::server
