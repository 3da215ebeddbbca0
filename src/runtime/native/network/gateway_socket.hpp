#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <boost/asio/ip/address.hpp>
#include <sys/socket.h>

#include <cstdint>

namespace opensandbox::runtime::native {

/// A non-blocking UDP or TCP socket (SOCK_DGRAM, SOCK_STREAM: which listens) on an address of this
/// host. `port` 0 lets the kernel choose; afterwards it is the one it has.
Result<UniqueFd> bind_gateway(int type, const boost::asio::ip::address& address,
                              std::uint16_t& port);

}  // namespace opensandbox::runtime::native
