#include "egress/host/request_environment.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::egress {

namespace {

constexpr std::string_view kPrefix = "OPENSANDBOX_EGRESS_";
constexpr std::string_view kTransparent = "MITMPROXY_TRANSPARENT";
constexpr std::string_view kInterceptionModeWish = "MITMPROXY_INTERCEPTION_MODE";
constexpr std::array<std::string_view, 9> kOfASandbox{
    kTransparent,
    kInterceptionModeWish,
    "MITMPROXY_SSL_INSECURE",
    "MITMPROXY_EXTRA_PORTS",
    "DENY_WEBHOOK",
    "METRICS_EXTRA_ATTRS",
    "CREDENTIAL_VAULT_REQUIRE_TLS",
    "CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH",
    "CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS",
};
constexpr std::array<std::string_view, 2> kOfTheHost{"LOG_LEVEL", "DNS_UPSTREAM_TIMEOUT"};

template <class List>
bool has(const List& list, std::string_view item) {
    return std::ranges::find(list, item) != list.end();
}

}  // namespace

std::map<std::string, std::string> sandbox_defaults(const EnvironmentLookup& operators) {
    std::map<std::string, std::string> defaults;
    for (const std::string_view suffix : kOfASandbox) {
        if (suffix == kTransparent || suffix == kInterceptionModeWish) continue;
        std::string name = std::string(kPrefix) + std::string(suffix);
        if (auto value = operators(name)) defaults.emplace(std::move(name), std::move(*value));
    }
    return defaults;
}

Result<ParsedEnvironment> parse_request_environment(
    const std::map<std::string, std::string>& variables,
    const std::map<std::string, std::string>& defaults) {
    std::vector<std::string> ignored;
    std::map<std::string, std::string, std::less<>> taken(defaults.begin(), defaults.end());
    for (const auto& [name, value] : variables) {
        const bool ours = name.starts_with(kPrefix);
        const std::string_view suffix =
            ours ? std::string_view(name).substr(kPrefix.size()) : std::string_view();
        if (has(kOfASandbox, suffix)) {
            taken[name] = value;
        } else if (has(kOfTheHost, suffix)) {
            ignored.push_back(name + ": holds for all sandboxes of this host; it is ignored");
        } else if (suffix == "POLICY_FILE") {
            return Error(ErrorCode::unsupported,
                         name + ": the host keeps the policies of its sandboxes");
        } else {
            return Error(ErrorCode::invalid_argument, name + ": must not be set for a sandbox");
        }
    }
    auto parsed = parse_environment([&](std::string_view name) -> std::optional<std::string> {
        const auto found = taken.find(name);
        if (found == taken.end()) return std::nullopt;
        return found->second;
    });
    if (!parsed) return parsed.error();
    parsed->warnings.insert(parsed->warnings.end(), ignored.begin(), ignored.end());
    return parsed;
}

}  // namespace opensandbox::egress
