#pragma once

#include "runtime/native/host/host.hpp"
#include "runtime/native/network/resolver.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// The networks that sandboxes share: who is in which, for the packet filter and for the resolver.
class Networks {
  public:
    /// Borrows both.
    Networks(const Host& host, Resolver& resolver) : host_(&host), resolver_(&resolver) {}

    /// `network` is its name with its tenant's before it; others of it find the sandbox under each
    /// of `names`. On failure it is in none.
    Status join(SlotId slot, const std::optional<net::Ipv6Address>& address6,
                const std::string& network, std::vector<std::string> names);
    /// Does nothing to one that is in none.
    void leave(SlotId slot);

  private:
    struct Network {
        std::uint32_t number = 0;
        std::size_t members = 0;
    };

    const Host* host_;
    Resolver* resolver_;
    std::map<std::string, Network> networks_;
    std::map<std::uint32_t, std::string> members_;  ///< by the slot's serial
    std::uint32_t last_number_ = 0;
};

}  // namespace opensandbox::runtime::native
