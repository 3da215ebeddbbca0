#pragma once

#include "runtime/native/host/host.hpp"

namespace opensandbox::runtime::native {

/// Gateway address, forwarding, resolver and firewall; fills in what the host's network decides.
Status prepare_network(Host& host);
}  // namespace opensandbox::runtime::native
