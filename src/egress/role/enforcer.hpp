#pragma once

#include "base/unique_fd.hpp"
#include "egress/dns/settings.hpp"
#include "egress/intercept/core/pass_through_list.hpp"
#include "egress/policy/policy_files.hpp"
#include "egress/policy/policy_json.hpp"
#include "egress/rules/host_ruleset.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::egress {

/// Sockets of the host's network namespace, bound, those of TCP listening: whoever hands them in
/// may bind what the enforcer may not. Those of DNS and interception stand on the gateways'
/// addresses, at the ports that HostOptions names; those of IPv6 serve IPv6 only. Those of a family
/// without a gateway, and of interception without an interceptor's port, may be empty.
struct EnforcerSockets {
    UniqueFd dns_udp4;
    UniqueFd dns_tcp4;
    UniqueFd dns_udp6;
    UniqueFd dns_tcp6;
    UniqueFd intercept4;
    UniqueFd intercept6;
    UniqueFd api;
};

struct EnforcerSettings {
    /// Limits of DNS that all sandboxes share are wider than a sidecar's: what a few use up must
    /// not be what the others lack.
    explicit EnforcerSettings(rules::HostOptions table);

    /// Its log's group must not be 0 for refused packets to be told of.
    rules::HostOptions rules;
    /// `<id>/policy.json` of each sandbox, `authority/ca-cert.pem` and `authority/ca-key.pem` of
    /// interception. Made when not there; nobody but this user's processes may write to it.
    std::filesystem::path state_directory;
    std::filesystem::path overlay_directory{kOverlayDirectory};  ///< laid over every policy
    std::filesystem::path resolv_conf = "/etc/resolv.conf";      ///< when `dns` names no upstreams
    dns::ProxySettings dns;
    std::size_t max_rules = kDefaultMaxRules;  ///< of one sandbox; 0: no limit
    bool block_doh = false;
    std::vector<net::AddressBlock> doh_servers;  ///< empty with block_doh: all of TCP port 443
    /// Hosts that are not intercepted, of all sandboxes.
    PassThroughList passed;
    /// Variables as in GuardedSpec, for the sandboxes whose requests set none. The webhook among
    /// them may be anywhere; one of a request must not be a service of this host or its cloud.
    std::map<std::string, std::string> sandbox_defaults;
    std::string upstream_trust_directory = "/etc/ssl/certs";
    std::string upstream_extra_ca;             ///< a PEM file, or empty
    std::string upstream_proxy;                ///< a URL, or empty
    std::string upstream_proxy_authorization;  ///< the whole value of Proxy-Authorization
    std::chrono::milliseconds overlay_interval{60'000};
    std::chrono::milliseconds stop_grace{5'000};  ///< for requests of the API under way
};

/// A sandbox that is to be guarded.
struct GuardedSpec {
    std::string id;                       ///< 1 to 128 of [A-Za-z0-9_.-], not beginning with a dot
    std::string link;                     ///< the host's end of its link, 1 to 15 bytes
    std::vector<net::Address> addresses;  ///< what it may send from, of both families; at least one
    std::string policy;                   ///< JSON; "": nothing is allowed
    std::string token;                    ///< for its API; "": that is open
    /// What a request may set (network contract 1.3), by full names:
    ///   OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT, _MITMPROXY_INTERCEPTION_MODE,
    ///   _MITMPROXY_SSL_INSECURE, _MITMPROXY_EXTRA_PORTS, _DENY_WEBHOOK, _METRICS_EXTRA_ATTRS,
    ///   _CREDENTIAL_VAULT_REQUIRE_TLS, _CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH,
    ///   _CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS; _LOG_LEVEL and _DNS_UPSTREAM_TIMEOUT are the host's
    ///   alone: ignored with a warning; _POLICY_FILE is refused: the policy is kept by the host.
    std::map<std::string, std::string> environment;
};

/// Egress control of many sandboxes of a host (network contract part 1), from the host's network
/// namespace: one packet filter table, DNS proxy, interceptor and API for all, with policy, vault,
/// audit and token of each. One event loop, whose thread and those it starts are in that namespace.
///
/// The packet filter's table outlives it, however it ends: what was refused stays refused, and what
/// was learned open until that expires. The next to start takes it over.
///
/// Its API, on the socket it was given: GET /healthz of all, and `/sandboxes/{id}` with the routes
/// of the contract behind it (`/policy`, `/credential-vault`, `/healthz`, `/policy/denials`,
/// `/metrics`), with the sandbox's token. 404 for an id that is not guarded.
class Enforcer {
  public:
    Enforcer(asio::any_io_executor executor, EnforcerSettings settings, EnforcerSockets sockets);
    /// After stop() the loop's handlers that are ready have to run before destruction.
    ~Enforcer();
    Enforcer(const Enforcer&) = delete;
    Enforcer& operator=(const Enforcer&) = delete;

    /// Takes the table over and serves. Sandboxes found in it stay refused what they were refused,
    /// and get no answers to queries, until guard() names them. `unsupported` for a kernel without
    /// nf_tables, `permission_denied` while another process owns the table.
    Awaitable<Status> start();

    /// From its return on the sandbox's packets are judged. What its API changed before, also under
    /// an earlier enforcer, goes before `spec.policy`. `invalid_argument` names what is wrong with
    /// the spec (`egress[3].target: ...`), `too_large` for more rules than allowed, `conflict` for
    /// an id or link that is guarded already, `unsupported` for interception without an
    /// interceptor. A failure leaves nothing of it; but if the table held the link from before,
    /// that stays as it was (refusing), settle() included, until release() or another guard().
    Awaitable<Status> guard(GuardedSpec spec);
    [[nodiscard]] bool guards(const std::string& id) const;

    /// Nothing of the sandbox is kept: rules, learned addresses, files. Fine for ids that are not
    /// known. To be called before the link's name is used again. Its connections are cut soon
    /// after; guard() of another with one of its addresses waits for that.
    Awaitable<void> release(std::string id);

    /// After a restart, once all sandboxes that live were named: removes what the table holds of
    /// others.
    void settle();

    /// Ends the API, DNS and interception. The table stays.
    Awaitable<void> stop();

    /// What sandboxes with interception are to trust, PEM; empty before start() and without an
    /// interceptor.
    [[nodiscard]] const std::string& authority_pem() const;
    /// Prometheus text about all sandboxes together.
    [[nodiscard]] std::string metrics() const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace opensandbox::egress
