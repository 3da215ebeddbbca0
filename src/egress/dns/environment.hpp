#pragma once

#include "egress/dns/settings.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress::dns {

/// Looks a variable up by its name.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

struct Environment {
    Environment() = default;
    ProxySettings settings;  ///< its upstreams without hooks
    /// Upstreams whose sockets get no mark (OPENSANDBOX_EGRESS_NAMESERVER_EXEMPT).
    std::vector<boost::asio::ip::address> exempt;
    std::vector<std::string> warnings;  ///< what was wrong and replaced by its default
};

/// What the contract's variables (1.3) say of name resolution; all begin with
/// OPENSANDBOX_EGRESS_. A bad upstream is an error, other bad values of the contract's are replaced
/// and warned of. Ours, beside them, must be right:
///   DNS_DENIAL       nxdomain (default) or refused
///   DNS_QUERY_TYPES  comma list of names or TYPEn, instead of the default ones
///   DNS_MAX_LABEL, DNS_MAX_NAME, DNS_MAX_LABELS, DNS_MAX_DISTINCT   NameLimits; 0 is none
///   DNS_RATE, DNS_FORWARD_RATE   queries per second of one client; 0 is no limit
///   DNS_CACHE_BYTES
///   DNS_MIXED_CASE   1, true, yes, y or on; off by default
/// `resolv_conf` is the text of that file, used when no upstream is named: servers outside of
/// loopback first, at most 10; 8.8.8.8 when it names none. Pure.
Result<Environment> read_environment(const Variables& variable, std::string_view resolv_conf);

/// `ip`, `ip:port`, `[v6]` or `[v6]:port`, by commas; port 53 unless said. `invalid_argument` for
/// anything else, a host name for example. The same server twice counts once.
Result<std::vector<UpstreamServer>> parse_upstreams(std::string_view text);

/// The number of a type by its name (A, HTTPS, TYPE65); letters in any case.
std::optional<std::uint16_t> query_type(std::string_view name);

}  // namespace opensandbox::egress::dns
