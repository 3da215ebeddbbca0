#pragma once

#include "base/error.hpp"
#include "base/log.hpp"
#include "egress/dns/settings.hpp"
#include "net/address_block.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::egress {

/// An address and a port, or all addresses.
struct ListenAddress {
    std::optional<net::Address> address;  ///< empty: all of both families
    std::uint16_t port = 18080;
};

/// A DNS server.
struct DnsUpstream {
    net::Address address;
    std::uint16_t port;
    friend bool operator==(const DnsUpstream&, const DnsUpstream&) = default;
};

/// The sidecar's environment (network contract 1.3). Variables that are set to nothing count as
/// unset.
struct SidecarOptions {
    bool nft = false;  ///< mode dns+nft, not dns
    std::string rules;
    std::string policy_file;
    std::size_t max_rules = 4096;  ///< 0: no limit
    ListenAddress http;
    std::string token;  ///< empty: the API is open

    log::Level log_level = log::Level::info;
    std::vector<std::string> log_outputs{"stdout"};  ///< "stdout", "stderr", paths
    std::string deny_webhook;                        ///< an http or https URL, or empty
    std::string sandbox_id;
    std::vector<std::pair<std::string, std::string>> extra_attributes;

    std::vector<net::Address> nameserver_exempt;
    std::vector<DnsUpstream> dns_upstreams;  ///< empty: those of resolv.conf
    std::chrono::seconds dns_timeout{5};
    std::string dns_probe = ".";
    std::chrono::seconds dns_probe_interval{30};
    bool block_doh = false;
    std::vector<net::AddressBlock> doh_blocklist;  ///< empty with block_doh: all of TCP port 443

    bool intercept = false;
    std::uint16_t intercept_port = 18081;
    std::vector<std::uint16_t> intercept_ports{80, 443};  ///< destination ports
    /// Ours: names, `*.name` and regular expressions that are not intercepted.
    std::vector<std::string> pass_through;
    /// Interception mode credential-bound: of TLS only what the vault's bindings are for.
    bool credential_bound = false;
    std::string upstream_trust_directory = "/etc/ssl/certs";
    bool upstream_insecure = false;
    std::string upstream_extra_ca;             ///< a PEM file, or empty
    std::string upstream_proxy;                ///< a URL that the interceptor reads, or empty
    std::string upstream_proxy_authorization;  ///< the whole value of Proxy-Authorization

    bool vault_requires_tls = false;
    bool vault_requires_scoped_match = false;
    std::vector<net::AddressBlock> vault_trusted_proxies;
};

struct ParsedEnvironment {
    SidecarOptions options;
    /// The filter of names. Its upstreams, and how they are asked, are among the options.
    dns::ProxySettings dns;
    std::vector<std::string> warnings;  ///< one for each value that was not taken as it stands
};

/// The value of a variable, or nothing.
using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view)>;

/// The settings of the table (table.hpp); `dns` is what counts where none speaks of the filter.
/// Values that the contract gives a fallback for are replaced by it with a warning. `unsupported`
/// for what this program does not do (scripts of mitmproxy, the fleet profile); `invalid_argument`
/// naming the variable for values that would leave something open that was meant to be shut. No
/// value of a secret is told. Pure.
Result<ParsedEnvironment> parse_environment(const EnvironmentLookup& lookup,
                                            dns::ProxySettings dns = {});

}  // namespace opensandbox::egress
