#include "runtime/native/network/network_names.hpp"

#include <algorithm>

namespace opensandbox::runtime::native {

namespace {

/// The name without `domain` and the dot before it; the name itself when it ends otherwise.
std::string_view without_domain(std::string_view name, std::string_view domain) {
    if (domain.empty() || name.size() < domain.size() + 2 || !name.ends_with(domain)) return name;
    const std::string_view rest = name.substr(0, name.size() - domain.size());
    return rest.ends_with('.') ? rest.substr(0, rest.size() - 1) : name;
}

}  // namespace

void NetworkNames::set(net::Ipv4Address sandbox, std::string network,
                       std::vector<std::string> names, const std::vector<Address>& others) {
    if (const auto found = members_.find(sandbox); found != members_.end()) {
        for (const std::string& name : found->second.names) {
            const auto at = names_.find({found->second.network, name});
            if (at == names_.end()) continue;
            std::erase_if(at->second, [&](const Address& address) {
                return std::ranges::count(found->second.addresses, address) > 0;
            });
            if (at->second.empty()) names_.erase(at);
        }
        members_.erase(found);
    }
    if (names.empty()) return;
    std::vector<Address> own{sandbox};
    own.insert(own.end(), others.begin(), others.end());
    for (const std::string& name : names) {
        auto& addresses = names_[{network, name}];
        for (const Address& address : own)
            if (std::ranges::count(addresses, address) == 0) addresses.push_back(address);
    }
    members_.emplace(sandbox, Member{std::move(network), std::move(names), std::move(own)});
}

std::optional<std::vector<NetworkNames::Address>> NetworkNames::find(
    net::Ipv4Address asking, std::string_view name, const std::vector<std::string>& search) const {
    const auto member = members_.find(asking);
    if (member == members_.end()) return std::nullopt;
    const std::string& network = member->second.network;
    // A tenant stands before the name that its network has for people.
    const std::string_view shown = std::string_view(network).substr(network.rfind('/') + 1);
    for (const std::string& domain : search) {
        const std::string_view rest = without_domain(name, domain);
        if (rest.size() == name.size()) continue;
        name = rest;
        break;
    }
    name = without_domain(name, shown);
    const auto found = names_.find({network, std::string(name)});
    if (found == names_.end()) return std::nullopt;
    return found->second;
}

}  // namespace opensandbox::runtime::native
