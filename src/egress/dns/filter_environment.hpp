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

/// Our variables beside the contract's, which say nothing of filtering. All begin with
/// OPENSANDBOX_EGRESS_DNS_; those that are not set leave the settings as they are:
///   DENIAL       nxdomain or refused
///   QUERY_TYPES  comma list of names or TYPEn, instead of the default ones
///   MAX_LABEL, MAX_NAME, MAX_LABELS, MAX_DISTINCT   NameLimits; 0 is none
///   RATE, FORWARD_RATE   queries per second of one client; 0 is no limit
///   CACHE_BYTES
///   MIXED_CASE   1, true, yes, y or on
/// `invalid_argument` names the variable that is wrong. Pure.
Status read_filter_environment(const Variables& variable, ProxySettings& settings);

/// The number of a type by its name (A, HTTPS, TYPE65); letters in any case.
std::optional<std::uint16_t> query_type(std::string_view name);

/// The upstreams when none is named (network 1.4): those of a resolv.conf's text, outside of
/// loopback first, at most 10; 8.8.8.8 when it names none. Pure.
std::vector<boost::asio::ip::udp::endpoint> default_upstreams(std::string_view resolv_conf);

}  // namespace opensandbox::egress::dns
