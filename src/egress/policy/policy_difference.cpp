#include "egress/policy/policy_difference.hpp"

#include <string>
#include <unordered_map>

namespace opensandbox::egress {
namespace {

std::string identity(const Rule& rule) {
    return std::string(to_string(rule.action)) + ' ' + rule.target.key();
}

using Counts = std::unordered_map<std::string, std::size_t>;

/// Splits rules into those that `counts` (of the other policy) knows, by identity, and the others.
void split(const std::vector<Rule>& rules, Counts counts, std::vector<std::string>& common,
           std::vector<const Rule*>& own) {
    for (const Rule& rule : rules) {
        std::string key = identity(rule);
        const auto found = counts.find(key);
        if (found == counts.end() || found->second == 0) {
            own.push_back(&rule);
            continue;
        }
        --found->second;
        common.push_back(std::move(key));
    }
}

Counts count(const std::vector<Rule>& rules) {
    Counts counts;
    for (const Rule& rule : rules)
        ++counts[identity(rule)];
    return counts;
}

PortSet without(PortSet from, const PortSet& what) {
    from.remove(what);
    return from;
}

PortSet permitted(const EffectivePolicy& policy, const net::Address& address, bool learned) {
    const bool open = learned || policy.default_action() == Action::allow;
    if (!open) return policy.allowed_by_address(address);
    return without(PortSet::all(), policy.denied_by_address(address));
}

}  // namespace

PolicyDifference::PolicyDifference(const EffectivePolicy& before, const EffectivePolicy& after)
    : before_(before),
      after_(after),
      default_changed_(before.default_action() != after.default_action()) {
    std::vector<std::string> kept_before;
    std::vector<std::string> kept_after;
    split(before.rules(), count(after.rules()), kept_before, removed_);
    split(after.rules(), count(before.rules()), kept_after, added_);
    order_changed_ = kept_before != kept_after;
    std::vector<Rule> changed;
    for (const Rule* rule : added_)
        changed.push_back(*rule);
    for (const Rule* rule : removed_)
        changed.push_back(*rule);
    changed_ = NameIndex(changed);
}

bool PolicyDifference::touches(std::string_view name) const {
    if (default_changed_ || order_changed_) return true;
    if (name.ends_with('.')) name.remove_suffix(1);
    return changed_.first(lower_case(name)) != NameIndex::kNone;
}

PortSet PolicyDifference::lost(std::string_view name) const {
    if (!touches(name)) return {};
    return without(before_.judge_name(name).granted, after_.judge_name(name).granted);
}

PortSet PolicyDifference::lost(const net::Address& address, bool learned) const {
    return without(permitted(before_, address, learned), permitted(after_, address, learned));
}

std::vector<net::AddressBlock> PolicyDifference::blocks() const {
    std::vector<net::AddressBlock> blocks;
    if (default_changed_ && after_.default_action() == Action::deny) {
        blocks.emplace_back(net::Address(boost::asio::ip::address_v4()), 0);
        blocks.emplace_back(net::Address(boost::asio::ip::address_v6()), 0);
        return blocks;
    }
    for (const auto* rules : {&added_, &removed_}) {
        for (const Rule* rule : *rules) {
            if (rule->target.kind() == Target::Kind::address)
                blocks.push_back(rule->target.block());
        }
    }
    return without_overlap(std::move(blocks));
}

}  // namespace opensandbox::egress
