#include "egress/policy/address_rules.hpp"

#include "egress/policy/special_blocks.hpp"

#include <algorithm>
#include <map>

namespace opensandbox::egress {
namespace {

using Grouped = std::map<Scope, std::vector<net::AddressBlock>>;

std::vector<ScopedBlocks> to_blocks(Grouped groups) {
    std::vector<ScopedBlocks> out;
    for (auto& [scope, blocks] : groups) {
        ScopedBlocks scoped;
        scoped.scope = scope;
        for (const net::AddressBlock& block : without_overlap(std::move(blocks))) {
            (block.is_v6() ? scoped.v6 : scoped.v4).push_back(block);
        }
        out.push_back(std::move(scoped));
    }
    const auto all = std::ranges::find(out, Scope(), &ScopedBlocks::scope);
    if (all != out.end()) std::rotate(out.begin(), all, all + 1);
    return out;
}

bool lies_in_special(const net::AddressBlock& block) {
    const auto special = special_block_of(block.network());
    return special && special->contains(block);
}

}  // namespace

AddressRules address_rules(const EffectivePolicy& policy) {
    Grouped deny;
    Grouped allow;
    Grouped special;
    for (const Rule& rule : policy.rules()) {
        const Target& target = rule.target;
        if (target.kind() != Target::Kind::address) continue;
        auto& group = rule.action == Action::deny ? deny : allow;
        group[target.scope()].push_back(target.block());
        if (rule.action == Action::deny) continue;
        if (lies_in_special(target.block())) special[target.scope()].push_back(target.block());
    }
    AddressRules rules;
    rules.default_action = policy.default_action();
    rules.deny = to_blocks(std::move(deny));
    rules.allow_special = to_blocks(std::move(special));
    rules.allow = to_blocks(std::move(allow));
    return rules;
}

}  // namespace opensandbox::egress
