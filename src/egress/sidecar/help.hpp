#pragma once

#include <string_view>

namespace opensandbox::egress {

/// What `opensandbox egress --help` says, before the variables of telemetry::otlp_help().
inline constexpr std::string_view kSidecarHelp =
    R"(Usage: opensandbox egress [--supervised]
       opensandbox egress get|patch ...     commands about a sandbox ('egress get --help')

Controls what leaves a sandbox, from within its network namespace; needs CAP_NET_ADMIN there. With
--supervised, as the first process of a container, it is started again when it ends unasked.

Its environment, all of it optional. Each name begins with OPENSANDBOX_EGRESS_ unless it is whole:
  policy        RULES (JSON), POLICY_FILE, MAX_RULES=4096, MODE=dns (or dns+nft: addresses, too);
                lists of operators in /var/egress/rules/{deny,allow,log_skip}.always
  API           HTTP_ADDR=:18080, TOKEN, SANDBOX_ID
  names         DNS_UPSTREAM, DNS_UPSTREAM_TIMEOUT=5, DNS_UPSTREAM_PROBE=., NAMESERVER_EXEMPT,
                DNS_UPSTREAM_PROBE_INTERVAL_SEC=30, BLOCK_DOH_443, DOH_BLOCKLIST
  tunnels       DNS_DENIAL=nxdomain (or refused), DNS_QUERY_TYPES, DNS_MAX_LABEL=50, DNS_MAX_NAME=120,
                DNS_MAX_LABELS=12, DNS_MAX_DISTINCT=100, DNS_RATE, DNS_FORWARD_RATE=200,
                DNS_CACHE_BYTES, DNS_MIXED_CASE
  interception  MITMPROXY_TRANSPARENT, MITMPROXY_PORT=18081, MITMPROXY_EXTRA_PORTS,
                MITMPROXY_IGNORE_HOSTS (names, *.names and patterns that are not intercepted),
                MITMPROXY_PASSTHROUGH_HOSTS (a JSON list of such names),
                MITMPROXY_INTERCEPTION_MODE=all (or credential-bound: of TLS only what bindings of
                the vault are for),
                MITMPROXY_UPSTREAM_TRUST_DIR=/etc/ssl/certs, MITMPROXY_UPSTREAM_EXTRA_CA,
                MITMPROXY_SSL_INSECURE, UPSTREAM_PROXY, UPSTREAM_PROXY_AUTH
  vault         CREDENTIAL_VAULT_REQUIRE_TLS, CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH,
                CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS
  reports       LOG_LEVEL=info, OPENSANDBOX_LOG_OUTPUT=stdout, DENY_WEBHOOK, METRICS_EXTRA_ATTRS

Targets of rules: api.example.com, *.example.com (not example.com itself), 203.0.113.7, 10.0.0.0/8,
fd00::/8, each with :443, :8000-8080, :53/udp behind it ([fd00::1]:443). The first rule that matches
a name decides; a rule that denies an address or its port beats all that allow it. {"action":
"allow", "target": "10.0.0.0/8", "ports": [80, 443]} is limited to TCP ports of an address or block,
without target to those of every address (mode dns+nft).

Metrics go to a collector of OTLP over HTTP where one is named:
)";

}  // namespace opensandbox::egress
