#include "lifecycle/admission_checks.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::lifecycle {
namespace {

constexpr std::string_view kPrefix = "OPENSANDBOX_EGRESS_";
constexpr std::string_view kInsecure = "MITMPROXY_SSL_INSECURE";
constexpr std::string_view kTransparent = "MITMPROXY_TRANSPARENT";
constexpr std::string_view kExtraPorts = "MITMPROXY_EXTRA_PORTS";

/// What a request may tell the sidecar (lifecycle 6.5).
constexpr std::array<std::string_view, 11> kAllowed{
    "LOG_LEVEL",
    "DNS_UPSTREAM_TIMEOUT",
    kInsecure,
    kTransparent,
    kExtraPorts,
    "DENY_WEBHOOK",
    "METRICS_EXTRA_ATTRS",
    "CREDENTIAL_VAULT_REQUIRE_TLS",
    "CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH",
    "CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS",
    "POLICY_FILE",
};

}  // namespace

Result<SplitEnv> split_env(const model::CreateRequest& request) {
    SplitEnv split;
    for (const auto& entry : request.env) {
        if (!entry.first.starts_with(kPrefix)) {
            split.sandbox.push_back(entry);
            continue;
        }
        if (!request.network_policy) {
            split.dropped = true;
            continue;
        }
        std::string_view suffix = std::string_view(entry.first).substr(kPrefix.size());
        if (std::ranges::find(kAllowed, suffix) == kAllowed.end()) {
            return invalid_parameter("env." + entry.first +
                                     ": must not be set by a request; of the egress settings only "
                                     "a few are.");
        }
        if (suffix == kInsecure && request.credential_proxy) {
            return invalid_parameter("env." + entry.first +
                                     ": must not be combined with credentialProxy.");
        }
        if (suffix == kExtraPorts && request.credential_bound) {
            return invalid_parameter(
                "env." + entry.first +
                ": must not be combined with credentialProxy.interceptionMode credential-bound.");
        }
        split.egress.push_back(entry);
        // The sandbox waits for the sidecar's certificate by it.
        if (suffix == kTransparent) split.sandbox.push_back(entry);
    }
    return split;
}

}  // namespace opensandbox::lifecycle
