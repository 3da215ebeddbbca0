#pragma once

#include <string_view>

/// The variables of egress settings that more than their row (table.hpp) speaks of.
namespace opensandbox::egress::setting {

inline constexpr std::string_view kPrefix = "OPENSANDBOX_EGRESS_";

inline constexpr std::string_view kRules = "OPENSANDBOX_EGRESS_RULES";
inline constexpr std::string_view kPolicyFile = "OPENSANDBOX_EGRESS_POLICY_FILE";
inline constexpr std::string_view kMode = "OPENSANDBOX_EGRESS_MODE";
inline constexpr std::string_view kToken = "OPENSANDBOX_EGRESS_TOKEN";
inline constexpr std::string_view kSandboxId = "OPENSANDBOX_EGRESS_SANDBOX_ID";
inline constexpr std::string_view kDnsUpstream = "OPENSANDBOX_EGRESS_DNS_UPSTREAM";
inline constexpr std::string_view kTransparent = "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT";
inline constexpr std::string_view kExtraPorts = "OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS";
inline constexpr std::string_view kInterceptionMode =
    "OPENSANDBOX_EGRESS_MITMPROXY_INTERCEPTION_MODE";
inline constexpr std::string_view kInsecure = "OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE";
inline constexpr std::string_view kExtraCa = "OPENSANDBOX_EGRESS_MITMPROXY_UPSTREAM_EXTRA_CA";
inline constexpr std::string_view kUpstreamProxy = "OPENSANDBOX_EGRESS_UPSTREAM_PROXY";
inline constexpr std::string_view kUpstreamProxyAuth = "OPENSANDBOX_EGRESS_UPSTREAM_PROXY_AUTH";
inline constexpr std::string_view kDenyWebhook = "OPENSANDBOX_EGRESS_DENY_WEBHOOK";

/// Of kInterceptionMode: of TLS only what the vault's bindings are for.
inline constexpr std::string_view kCredentialBound = "credential-bound";

}  // namespace opensandbox::egress::setting
