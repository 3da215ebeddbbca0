#pragma once

#include <boost/asio/ip/address.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::net::dns {

/// What a resolv.conf says (resolv.conf(5)).
struct ResolverSettings {
    std::vector<boost::asio::ip::address> servers;  ///< in order; IPv6 with its scope
    std::vector<std::string> search;                ///< lower case, without dots at the ends
    std::vector<std::string> options;
};

/// Lines that say nothing known are left out; `domain` counts as `search`, the last of both wins.
/// Of the text at most 64 KiB are looked at, of servers the first `max_servers`. Pure.
ResolverSettings parse_resolver_settings(std::string_view text, std::size_t max_servers = 3);

}  // namespace opensandbox::net::dns
