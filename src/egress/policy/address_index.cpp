#include "egress/policy/address_index.hpp"

#include <algorithm>

namespace opensandbox::egress {

AddressIndex::AddressIndex(const std::vector<Rule>& rules, Action action) : rules_(&rules) {
    for (std::uint32_t i = 0; i < rules.size(); ++i) {
        const Target& target = rules[i].target;
        if (target.kind() != Target::Kind::address || rules[i].action != action) continue;
        Entry& entry = entries_[target.block()];
        // Rules behind one without a limit add nothing.
        if (entry.ports.is_all()) continue;
        entry.rules.push_back(i);
        entry.ports.add(PortSet::of(target.scope()));
        auto& lengths = target.block().is_v6() ? lengths_v6_ : lengths_v4_;
        const unsigned length = target.block().prefix();
        if (std::ranges::find(lengths, length) == lengths.end()) lengths.push_back(length);
    }
}

template <class Visit>
void AddressIndex::visit(const net::Address& address, unsigned shortest_prefix,
                         const Visit& visit) const {
    for (const unsigned length : address.is_v6() ? lengths_v6_ : lengths_v4_) {
        if (length < shortest_prefix) continue;
        const auto found = entries_.find(net::AddressBlock(address, length));
        if (found != entries_.end()) visit(found->second);
    }
}

std::uint32_t AddressIndex::first(const net::Address& address, Transport transport,
                                  std::uint16_t port) const {
    std::uint32_t lowest = kNone;
    visit(address, 0, [&](const Entry& entry) {
        if (!entry.ports.contains(transport, port)) return;
        const auto rule = std::ranges::find_if(entry.rules, [&](std::uint32_t index) {
            return (*rules_)[index].target.scope().covers(transport, port);
        });
        if (rule != entry.rules.end()) lowest = std::min(lowest, *rule);
    });
    return lowest;
}

PortSet AddressIndex::ports(const net::Address& address, unsigned shortest_prefix) const {
    PortSet ports;
    visit(address, shortest_prefix, [&](const Entry& entry) {
        if (!ports.is_all()) ports.add(entry.ports);
    });
    return ports;
}

}  // namespace opensandbox::egress
