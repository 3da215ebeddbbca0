#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <boost/asio/ip/address.hpp>

#include <set>
#include <string_view>

/// What the host's network is like, as this process, which is in it, sees it.
namespace opensandbox::runtime::native {

/// Every address of every link but loopback's own 127.0.0.0/8 and ::1, and link-local ones.
Result<std::set<boost::asio::ip::address>> host_addresses();

/// A non-blocking descriptor that can be read after an address came or went.
Result<UniqueFd> watch_host_addresses();
/// Reads it empty.
void forget_address_changes(int watch);

/// Whether the text of /proc/net/route, or of /proc/net/ipv6_route, has a default route.
bool has_default_route(std::string_view route);
bool has_default_route6(std::string_view ipv6_route);

}  // namespace opensandbox::runtime::native
