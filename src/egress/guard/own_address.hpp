#pragma once

#include "net/address_block.hpp"

namespace opensandbox::egress {

/// Whether connections to an address stay on this host, by the routes of the thread's network
/// namespace; loopback's and the unspecified ones do. Three system calls, none of which waits; true
/// when they fail for want of descriptors or memory.
bool is_own_address(const net::Address& address);

}  // namespace opensandbox::egress
