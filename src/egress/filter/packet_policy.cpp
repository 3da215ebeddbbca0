#include "egress/filter/packet_policy.hpp"

#include "egress/policy/address_rules.hpp"

#include <netinet/in.h>

#include <algorithm>

namespace opensandbox::egress {

namespace {

/// A policy's scope covers TCP and UDP at once; one of the filter covers one protocol.
std::vector<rules::Scope> scopes_of(const Scope& scope) {
    if (scope.is_all()) return {rules::Scope()};
    std::vector<rules::Scope> scopes;
    if (scope.tcp) scopes.emplace_back(IPPROTO_TCP, scope.ports.first, scope.ports.last);
    if (scope.udp) scopes.emplace_back(IPPROTO_UDP, scope.ports.first, scope.ports.last);
    return scopes;
}

void append(std::vector<rules::ScopedPrefix>& out, const std::vector<ScopedBlocks>& all) {
    for (const ScopedBlocks& blocks : all) {
        for (const rules::Scope& scope : scopes_of(blocks.scope)) {
            for (const auto* family : {&blocks.v4, &blocks.v6}) {
                for (const net::AddressBlock& block : *family) {
                    out.emplace_back(rules::Prefix(block.network(), block.prefix()), scope);
                }
            }
        }
    }
}

bool is_limited_name(const Rule& rule) {
    return rule.target.kind() != Target::Kind::address && !rule.target.scope().is_all();
}

/// Whether some rule for names is limited to ports: then all scopes are of one protocol.
bool by_ports(const EffectivePolicy& policy) {
    return std::ranges::any_of(policy.rules(), is_limited_name);
}

std::vector<rules::Scope> all_by_protocol() {
    return {rules::Scope(IPPROTO_TCP), rules::Scope(IPPROTO_UDP),
            rules::Scope(rules::Scope::kOthers)};
}

}  // namespace

rules::PolicyRules packet_rules(const EffectivePolicy& policy,
                                const PacketPolicySettings& settings) {
    rules::PolicyRules out;
    out.intercepted_ports = settings.intercepted_ports;
    out.learned_scopes = {rules::Scope()};
    if (by_ports(policy)) {
        std::vector<rules::Scope> scopes = all_by_protocol();
        for (const Rule& rule : policy.rules()) {
            if (!is_limited_name(rule)) continue;
            for (const rules::Scope& scope : scopes_of(rule.target.scope())) {
                scopes.push_back(scope);
            }
        }
        out.learned_scopes = rules::partition(scopes);
    }
    if (settings.filtering) {
        const AddressRules addresses = address_rules(policy);
        append(out.denied, addresses.deny);
        append(out.allowed, addresses.allow_special);
        append(out.allowed, addresses.allow);
        out.allow_by_default = addresses.default_action == Action::allow;
        out.block_doh = settings.block_doh;
        for (const net::AddressBlock& block : settings.doh_servers) {
            out.doh_servers.emplace_back(block.network(), block.prefix());
        }
    } else {
        out.allow_by_default = true;
        out.refuse_private = false;
    }
    out.normalize();
    return out;
}

std::vector<rules::Scope> learned_scopes(const EffectivePolicy& policy, const PortSet& granted) {
    if (granted.is_all()) {
        return by_ports(policy) ? all_by_protocol() : std::vector<rules::Scope>{rules::Scope()};
    }
    std::vector<rules::Scope> scopes;
    for (const PortRange& ports : granted.tcp()) {
        scopes.emplace_back(IPPROTO_TCP, ports.first, ports.last);
    }
    for (const PortRange& ports : granted.udp()) {
        scopes.emplace_back(IPPROTO_UDP, ports.first, ports.last);
    }
    if (granted.other()) scopes.emplace_back(rules::Scope::kOthers);
    return scopes;
}

bool holds(const PortSet& granted, const rules::Scope& scope) {
    if (scope.protocol == 0) return granted.is_all();
    if (scope.protocol == rules::Scope::kOthers) return granted.other();
    PortSet whole;
    whole.append(scope.protocol == IPPROTO_TCP ? Transport::tcp : Transport::udp,
                 PortRange(scope.first, scope.last));
    return granted.contains(whole);
}

}  // namespace opensandbox::egress
