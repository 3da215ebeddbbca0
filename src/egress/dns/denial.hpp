#pragma once

#include "egress/dns/gate.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace opensandbox::egress::dns {

/// A query that was not answered as asked, because of policy or of a limit.
struct Denial {
    ClientId client = 0;
    std::string name;  ///< as Gate gets it
    std::uint16_t type = 0;
    std::string reason;
    std::chrono::system_clock::time_point time;
};

/// Told of each denial, unsampled; it must be quick. A client can cause as many as it likes: who
/// writes or sends them on has to bound that.
using DenialObserver = std::function<void(const Denial&)>;

}  // namespace opensandbox::egress::dns
