#pragma once

#include "egress/policy/policy.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace opensandbox::egress {

/// Which rules of one action speak of an address: one look-up for each length of prefix in use.
class AddressIndex {
  public:
    AddressIndex() = default;
    AddressIndex(const std::vector<Rule>& rules, Action action);

    static constexpr std::uint32_t kNone = UINT32_MAX;

    /// The lowest index of a rule that covers this address and port; kNone when there is none.
    [[nodiscard]] std::uint32_t first(const net::Address& address, Transport transport,
                                      std::uint16_t port) const;
    /// What the rules for this address cover together; those for networks wider than
    /// `shortest_prefix` are left out.
    [[nodiscard]] PortSet ports(const net::Address& address, unsigned shortest_prefix = 0) const;

  private:
    /// The rules for one block, in order, and what they cover together: many for one block must not
    /// make its look-ups slow.
    struct Entry {
        std::vector<std::uint32_t> rules;
        PortSet ports;
    };
    template <class Visit>
    void visit(const net::Address& address, unsigned shortest_prefix, const Visit& visit) const;

    const std::vector<Rule>* rules_ = nullptr;
    std::unordered_map<net::AddressBlock, Entry, net::AddressBlockHash> entries_;
    std::vector<unsigned> lengths_v4_;
    std::vector<unsigned> lengths_v6_;
};

}  // namespace opensandbox::egress
