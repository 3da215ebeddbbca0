#include "egress/policy/effective_policy.hpp"

#include "egress/policy/special_blocks.hpp"

#include <algorithm>
#include <set>

namespace opensandbox::egress {
namespace {

/// As rules have it: lower case, without the dot at the end.
std::string plain_name(std::string_view name) {
    if (name.ends_with('.')) name.remove_suffix(1);
    return lower_case(name);
}

std::vector<Rule> concatenate(Overlay overlay, const std::vector<PolicyRule>& user,
                              std::vector<std::uint32_t>& written) {
    std::vector<Rule> rules;
    rules.reserve(overlay.deny.size() + overlay.allow.size() + user.size());
    for (Rule& rule : overlay.deny)
        rules.push_back(std::move(rule));
    for (Rule& rule : overlay.allow)
        rules.push_back(std::move(rule));
    const std::size_t overlaid = rules.size();
    for (std::uint32_t i = 0; i < user.size(); ++i) {
        user[i].expand(rules);
        written.resize(rules.size() - overlaid, i);
    }
    return rules;
}

}  // namespace

std::string_view to_string(Origin origin) {
    switch (origin) {
        case Origin::overlay_deny: return kDenyFile;
        case Origin::overlay_allow: return kAllowFile;
        case Origin::user: return "policy";
        case Origin::learned: return "learned";
        case Origin::default_action: return "default";
    }
    return "default";
}

std::string to_string(const Reason& reason, bool allowed) {
    std::string text(to_string(reason.origin));
    if (!reason.rule) return text + (allowed ? ": allow" : ": deny");
    text += " rule " + std::to_string(reason.index) + ": ";
    text += to_string(reason.rule->action);
    return text + " " + reason.rule->target.text();
}

EffectivePolicy::EffectivePolicy(Overlay overlay, Policy user)
    : user_(std::move(user)),
      overlay_deny_(overlay.deny.size()),
      overlay_allow_(overlay.allow.size()),
      rules_(concatenate(std::move(overlay), user_.rules, written_)),
      names_(rules_),
      denied_(rules_, Action::deny),
      allowed_(rules_, Action::allow) {}

Reason EffectivePolicy::reason(std::size_t rule) const {
    Reason reason;
    reason.rule = &rules_[rule];
    reason.index = rule;
    reason.origin = Origin::overlay_deny;
    if (rule < overlay_deny_) return reason;
    reason.index -= overlay_deny_;
    reason.origin = Origin::overlay_allow;
    if (reason.index < overlay_allow_) return reason;
    reason.index = written_[reason.index - overlay_allow_];
    reason.origin = Origin::user;
    return reason;
}

NameVerdict EffectivePolicy::by_default() const {
    NameVerdict verdict;
    verdict.allowed = default_action() == Action::allow;
    if (verdict.allowed) verdict.granted = PortSet::all();
    return verdict;
}

NameVerdict EffectivePolicy::by_rule(std::uint32_t index) const {
    NameVerdict verdict;
    verdict.allowed = rules_[index].action == Action::allow;
    (verdict.allowed ? verdict.granted : verdict.refused) = PortSet::all();
    verdict.reason = reason(index);
    if (!verdict.allowed) verdict.refused_by = verdict.reason;
    return verdict;
}

/// For each port the first of the rules that covers it; `each(first_port, last_port, rule)` gets
/// stretches of ports in order, kNone where no rule does. Sorted once: many rules for one name must
/// not make its lookups slow.
template <class Each>
void EffectivePolicy::each_stretch(const std::vector<std::uint32_t>& hits, Transport transport,
                                   const Each& each) const {
    struct Edge {
        std::uint32_t port;
        std::uint32_t rule;
        bool begins;
    };
    std::vector<Edge> edges;
    for (const std::uint32_t index : hits) {
        const Scope& scope = rules_[index].target.scope();
        if (!(transport == Transport::tcp ? scope.tcp : scope.udp)) continue;
        edges.push_back({scope.ports.first, index, true});
        edges.push_back({std::uint32_t{scope.ports.last} + 1, index, false});
    }
    std::ranges::sort(edges, {}, &Edge::port);
    constexpr std::uint32_t kEnd = 65536;
    std::set<std::uint32_t> covering;
    std::uint32_t from = 0;
    const auto stretch = [&](std::uint32_t end) {
        if (end == from) return;
        each(PortRange(static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(end - 1)),
             covering.empty() ? NameIndex::kNone : *covering.begin());
        from = end;
    };
    for (const Edge& edge : edges) {
        stretch(edge.port);
        if (edge.begins) {
            covering.insert(edge.rule);
        } else {
            covering.erase(edge.rule);
        }
    }
    stretch(kEnd);
}

NameVerdict EffectivePolicy::by_ports(std::string_view name) const {
    std::vector<std::uint32_t> hits;
    names_.find(name, hits);
    NameVerdict verdict;
    std::uint32_t granting = NameIndex::kNone;
    std::uint32_t refusing = NameIndex::kNone;
    const auto decide = [&](std::uint32_t index) -> PortSet* {
        if (index == NameIndex::kNone) {
            return default_action() == Action::allow ? &verdict.granted : nullptr;
        }
        const bool allow = rules_[index].action == Action::allow;
        auto& first = allow ? granting : refusing;
        first = std::min(first, index);
        return allow ? &verdict.granted : &verdict.refused;
    };
    for (const Transport transport : {Transport::tcp, Transport::udp}) {
        each_stretch(hits, transport, [&](PortRange range, std::uint32_t index) {
            if (PortSet* set = decide(index)) set->append(transport, range);
        });
    }
    const bool whole = rules_[hits.back()].target.scope().is_all();
    if (PortSet* set = decide(whole ? hits.back() : NameIndex::kNone)) set->append_other();

    verdict.allowed = !verdict.granted.empty();
    if (refusing != NameIndex::kNone) verdict.refused_by = reason(refusing);
    if (granting != NameIndex::kNone) {
        verdict.reason = reason(granting);
    } else if (!verdict.allowed) {
        verdict.reason = verdict.refused_by;
    }
    return verdict;
}

NameVerdict EffectivePolicy::judge_name(std::string_view name) const {
    const std::string plain = plain_name(name);
    const std::uint32_t first = names_.first(plain);
    if (first == NameIndex::kNone) return by_default();
    if (rules_[first].target.scope().is_all()) return by_rule(first);
    return by_ports(plain);
}

Verdict EffectivePolicy::judge_name(std::string_view name, Transport transport,
                                    std::uint16_t port) const {
    std::vector<std::uint32_t> hits;
    names_.find(plain_name(name), hits);
    Verdict verdict;
    for (const std::uint32_t index : hits) {
        if (!rules_[index].target.scope().covers(transport, port)) continue;
        verdict.allowed = rules_[index].action == Action::allow;
        verdict.reason = reason(index);
        return verdict;
    }
    verdict.allowed = default_action() == Action::allow;
    return verdict;
}

NameVerdict EffectivePolicy::judge_chain(std::span<const std::string> names) const {
    if (names.empty()) return judge_name("");
    NameVerdict verdict = judge_name(names.front());
    for (std::size_t i = 1; i < names.size() && verdict.allowed; ++i) {
        const NameVerdict alias = judge_name(names[i]);
        if (alias.refused.empty()) continue;
        verdict.granted.remove(alias.refused);
        verdict.refused.add(alias.refused);
        if (!verdict.granted.empty()) continue;
        verdict.allowed = false;
        verdict.reason = alias.refused_by;
        verdict.decided_by = i;
    }
    return verdict;
}

Verdict EffectivePolicy::judge_address(const net::Address& address, Transport transport,
                                       std::uint16_t port, bool learned) const {
    Verdict verdict;
    const std::uint32_t denied = denied_.first(address, transport, port);
    if (denied != AddressIndex::kNone) {
        verdict.reason = reason(denied);
        return verdict;
    }
    verdict.allowed = true;
    if (learned) {
        verdict.reason.origin = Origin::learned;
        return verdict;
    }
    const std::uint32_t allowed = allowed_.first(address, transport, port);
    if (allowed != AddressIndex::kNone) {
        verdict.reason = reason(allowed);
        return verdict;
    }
    verdict.allowed = default_action() == Action::allow;
    return verdict;
}

PortSet EffectivePolicy::allowed_by_address(const net::Address& address) const {
    PortSet ports = allowed_.ports(address);
    if (!ports.empty()) ports.remove(denied_.ports(address));
    return ports;
}

PortSet EffectivePolicy::denied_by_address(const net::Address& address) const {
    return denied_.ports(address);
}

PortSet EffectivePolicy::learnable(const net::Address& address, const PortSet& granted) const {
    PortSet ports = granted;
    if (const auto special = special_block_of(address)) {
        ports.keep(allowed_.ports(address, special->prefix()));
    }
    if (!ports.empty()) ports.remove(denied_.ports(address));
    return ports;
}

}  // namespace opensandbox::egress
