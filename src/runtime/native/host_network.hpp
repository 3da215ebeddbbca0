#pragma once

#include "runtime/native/host.hpp"

namespace opensandbox::runtime::native {

/// Gateway address, forwarding, resolver and firewall; fills in what the host's network decides.
Status prepare_network(Host& host);
/// Routes of sandboxes carry the gateway's address and go with it: while another server has links,
/// perhaps in the same range, it stays. The last one takes it away.
void remove_gateway(const Host& host);

}  // namespace opensandbox::runtime::native
