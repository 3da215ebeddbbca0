#include "runtime/native/spawner/sandboxes/networks.hpp"

#include "base/log.hpp"
#include "runtime/native/network/firewall.hpp"

namespace opensandbox::runtime::native {

Status Networks::join(SlotId slot, const std::optional<net::Ipv6Address>& address6,
                      const std::string& network, std::vector<std::string> names) {
    Network& entry = networks_[network];
    if (entry.members == 0) entry.number = ++last_number_;
    auto joined = join_network(host_->firewall_table(), host_->link_name(slot), entry.number);
    if (!joined) {
        if (entry.members == 0) networks_.erase(network);
        return joined.error().within("network");
    }
    ++entry.members;
    members_[slot.serial] = network;
    NetworkMember member;
    member.address = host_->address(slot).to_uint();
    if (address6) member.address6 = address6->to_string();
    member.network = network;
    member.names = std::move(names);
    resolver_->set(std::move(member));
    return {};
}

void Networks::leave(SlotId slot) {
    const auto member = members_.find(slot.serial);
    if (member == members_.end()) return;
    const auto network = networks_.find(member->second);
    const std::string link = host_->link_name(slot);
    auto left = leave_network(host_->firewall_table(), link, network->second.number);
    if (!left) {
        log::error("a link stays in its network",
                   {{"link", link}, {"reason", left.error().message()}});
    }
    resolver_->remove(host_->address(slot));
    if (--network->second.members == 0) networks_.erase(network);
    members_.erase(member);
}

}  // namespace opensandbox::runtime::native
