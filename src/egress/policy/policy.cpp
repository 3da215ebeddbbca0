#include "egress/policy/policy.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

std::vector<std::uint16_t> in_order(std::vector<std::uint16_t> ports) {
    std::ranges::sort(ports);
    const auto rest = std::ranges::unique(ports);
    ports.erase(rest.begin(), rest.end());
    return ports;
}

std::vector<PortRange> stretches(const std::vector<std::uint16_t>& ports) {
    std::vector<PortRange> ranges;
    for (const std::uint16_t port : in_order(ports)) {
        if (!ranges.empty() && ranges.back().last + 1 == port) {
            ranges.back().last = port;
        } else {
            ranges.emplace_back(port, port);
        }
    }
    return ranges;
}

}  // namespace

std::string_view to_string(Action action) {
    return action == Action::allow ? "allow" : "deny";
}

std::string ports_text(std::vector<std::uint16_t> ports) {
    std::string text = "ports=";
    for (const std::uint16_t port : in_order(std::move(ports))) {
        if (text.back() != '=') text += ',';
        text += std::to_string(port);
    }
    return text;
}

std::string PolicyRule::key() const {
    std::string key = target ? target->key() : std::string();
    // No target has a space in it.
    if (!ports.empty()) key += ' ' + ports_text(ports);
    return key;
}

std::string PolicyRule::name() const {
    return target ? target->key() : ports_text(ports);
}

void PolicyRule::expand(std::vector<Rule>& out) const {
    if (ports.empty()) {
        if (target) out.emplace_back(action, *target);
        return;
    }
    std::vector<net::AddressBlock> blocks;
    if (target) {
        blocks.push_back(target->block());
    } else {
        blocks.emplace_back(net::Address(boost::asio::ip::address_v4()), 0);
        blocks.emplace_back(net::Address(boost::asio::ip::address_v6()), 0);
    }
    for (const PortRange& range : stretches(ports)) {
        for (const net::AddressBlock& block : blocks)
            out.emplace_back(action, Target::of_tcp_ports(block, range));
    }
}

std::size_t PolicyRule::count() const {
    if (ports.empty()) return 1;
    return stretches(ports).size() * (target ? 1 : 2);
}

std::string_view mode_of(const Policy& policy) {
    if (!policy.rules.empty()) return "enforcing";
    return policy.default_action == Action::allow ? "allow_all" : "deny_all";
}

}  // namespace opensandbox::egress
