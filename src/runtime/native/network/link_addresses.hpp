#pragma once

#include "net/route_socket.hpp"

namespace opensandbox::runtime::native {

/// Fixed addresses of both ends of every slot's link: nobody needs to ask for them.
inline constexpr net::MacAddress kHostMac{0x02, 0xfe, 0, 0, 0, 0x01};
inline constexpr net::MacAddress kSlotMac{0x02, 0xfe, 0, 0, 0, 0x02};

}  // namespace opensandbox::runtime::native
