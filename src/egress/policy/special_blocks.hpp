#pragma once

#include "net/address_block.hpp"

#include <optional>
#include <vector>

namespace opensandbox::egress {

/// Whether an address is of no use as a public host: this host, private, shared, link-local (cloud
/// metadata), unique local, multicast, reserved, and the IPv6 forms that carry an IPv4 address.
/// A name that resolves to one is refused (rebinding) unless a rule allows the address itself.
bool is_special(const net::Address& address);

/// The network of special_blocks() that holds the address, if any.
std::optional<net::AddressBlock> special_block_of(const net::Address& address);

/// The networks behind is_special(), without overlap: the one list of them, for policy, DNS answers
/// and packet filter alike.
const std::vector<net::AddressBlock>& special_blocks();

}  // namespace opensandbox::egress
