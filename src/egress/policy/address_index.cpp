#include "egress/policy/address_index.hpp"

#include <algorithm>

namespace opensandbox::egress {

AddressIndex::AddressIndex(const std::vector<Rule>& rules, Action action) : rules_(&rules) {
    for (std::uint32_t i = 0; i < rules.size(); ++i) {
        const Target& target = rules[i].target;
        if (target.kind() != Target::Kind::address || rules[i].action != action) continue;
        auto& list = entries_[target.block()];
        // Rules behind one without a limit add nothing.
        if (!list.empty() && rules[list.back()].target.scope().is_all()) continue;
        list.push_back(i);
        auto& lengths = target.block().is_v6() ? lengths_v6_ : lengths_v4_;
        const unsigned length = target.block().prefix();
        if (std::ranges::find(lengths, length) == lengths.end()) lengths.push_back(length);
    }
}

template <class Visit>
void AddressIndex::visit(const Address& address, unsigned shortest_prefix,
                         const Visit& visit) const {
    for (const unsigned length : address.is_v6() ? lengths_v6_ : lengths_v4_) {
        if (length < shortest_prefix) continue;
        const auto found = entries_.find(AddressBlock(address, length));
        if (found == entries_.end()) continue;
        for (const std::uint32_t index : found->second)
            visit(index);
    }
}

std::uint32_t AddressIndex::first(const Address& address, Transport transport,
                                  std::uint16_t port) const {
    std::uint32_t lowest = kNone;
    visit(address, 0, [&](std::uint32_t index) {
        if (index < lowest && (*rules_)[index].target.scope().covers(transport, port)) {
            lowest = index;
        }
    });
    return lowest;
}

PortSet AddressIndex::ports(const Address& address, unsigned shortest_prefix) const {
    PortSet ports;
    visit(address, shortest_prefix, [&](std::uint32_t index) {
        if (!ports.is_all()) ports.add(PortSet::of((*rules_)[index].target.scope()));
    });
    return ports;
}

}  // namespace opensandbox::egress
