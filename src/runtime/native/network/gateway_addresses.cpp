#include "runtime/native/network/gateway_addresses.hpp"

#include "base/log.hpp"
#include "base/replace_file.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

using Addresses = std::vector<net::IpAddress>;

unsigned bits_of(const net::IpAddress& address) {
    return address.is_v6() ? 128 : 32;
}

Addresses recorded(const Gateways& gateways) {
    Addresses out;
    std::istringstream lines(read_file_or_empty(gateways.record));
    for (std::string line; std::getline(lines, line);) {
        boost::system::error_code wrong;
        const auto address = boost::asio::ip::make_address(line, wrong);
        if (!wrong) out.push_back(address);
    }
    return out;
}

Status record(const Gateways& gateways, const Addresses& addresses) {
    std::string text;
    for (const auto& address : addresses)
        text += address.to_string() + "\n";
    return replace_file(gateways.record, text);
}

/// What could not be removed, or must not be.
Addresses remove_unused(const Addresses& addresses) {
    Addresses left;
    auto routes = net::RouteSocket::open();
    if (!routes) return addresses;
    auto loopback = routes->link_index("lo");
    if (!loopback) return addresses;
    for (const auto& address : addresses) {
        const auto used = routes->sends_from(address);
        if (used && !*used) {
            auto removed = routes->delete_address(*loopback, address, bits_of(address));
            if (removed) continue;
            log::warn("a gateway's address stays behind", {{"reason", removed.error().message()}});
        }
        left.push_back(address);
    }
    return left;
}

}  // namespace

Status add_gateways(net::RouteSocket& routes, const Gateways& gateways) {
    auto loopback = routes.link_index("lo");
    if (!loopback) return loopback.error();
    net::RouteChanges changes;
    for (const auto& address : gateways.addresses) {
        // Tells people whose it is; IPv6 addresses have no labels.
        changes.add_address(*loopback, address, bits_of(address), gateways.label);
    }
    return routes.apply(changes);
}

Status write_down_gateways(const Gateways& gateways) {
    Addresses all = recorded(gateways);
    for (const auto& address : gateways.addresses)
        if (std::ranges::count(all, address) == 0) all.push_back(address);
    return record(gateways, all);
}

void sweep_gateways(const Gateways& gateways) {
    const Addresses& present = gateways.addresses;
    Addresses earlier = recorded(gateways);
    std::erase_if(earlier, [&](const auto& it) { return std::ranges::count(present, it) > 0; });
    if (earlier.empty()) return;
    Addresses kept = remove_unused(earlier);
    kept.insert(kept.end(), present.begin(), present.end());
    if (auto s = record(gateways, kept); !s)
        log::warn("gateways are not written down", {{"reason", s.error().message()}});
}

void remove_gateways(const Gateways& gateways) {
    const Addresses left = remove_unused(recorded(gateways));
    if (left.empty()) {
        ::unlink(gateways.record.c_str());
    } else if (auto s = record(gateways, left); !s) {
        log::warn("gateways are not written down", {{"reason", s.error().message()}});
    }
}

}  // namespace opensandbox::runtime::native
