#pragma once

#include <boost/asio/ip/address.hpp>

namespace opensandbox::egress::dns {

/// Whether an address belongs to this host or to somebody's inner network, or is none of a single
/// host: "this network", private, shared (CGNAT), loopback, link-local, multicast, reserved; unique
/// local, site-local, and every form of IPv6 that embeds an IPv4 address (compatible, mapped,
/// NAT64, 6to4, Teredo). A name of the outside has no business to lead there.
bool is_inner(const boost::asio::ip::address& address);

}  // namespace opensandbox::egress::dns
