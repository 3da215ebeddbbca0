#pragma once

#include "base/error.hpp"

#include <boost/asio/ip/address.hpp>

#include <set>
#include <string>

namespace opensandbox::runtime::native {

/// Installs, in this network namespace, what may leave by its uplink; the table is replaced in one
/// transaction. pasta speaks through sockets of the host: whatever they would deliver to the host
/// itself is refused here at once, also when it comes from a process of this namespace. `host` are
/// the host's addresses; besides, link-local ones, the host's loopback in its IPv6 guise
/// (::ffff:0.0.0.0/96) and 0.0.0.0/8 never leave. What comes by the uplink for this
/// namespace itself and is invalid to connection tracking is dropped without an answer.
Status install_uplink_firewall(const std::string& table,
                               const std::set<boost::asio::ip::address>& host);

}  // namespace opensandbox::runtime::native
