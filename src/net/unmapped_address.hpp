#pragma once

#include <boost/asio/ip/address.hpp>

namespace opensandbox::net {

/// An IPv4 address as itself where it is mapped into IPv6, as a socket of both families shows its
/// peers; every other address as it is.
inline boost::asio::ip::address unmapped(const boost::asio::ip::address& address) {
    if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
}

}  // namespace opensandbox::net
