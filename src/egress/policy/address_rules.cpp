#include "egress/policy/address_rules.hpp"

#include <algorithm>
#include <map>

namespace opensandbox::egress {
namespace {

using Grouped = std::map<Scope, std::vector<AddressBlock>>;

std::vector<ScopedBlocks> to_blocks(Grouped groups) {
    std::vector<ScopedBlocks> out;
    for (auto& [scope, blocks] : groups) {
        ScopedBlocks scoped;
        scoped.scope = scope;
        for (const AddressBlock& block : without_overlap(std::move(blocks))) {
            (block.is_v6() ? scoped.v6 : scoped.v4).push_back(block);
        }
        out.push_back(std::move(scoped));
    }
    const auto all = std::ranges::find(out, Scope(), &ScopedBlocks::scope);
    if (all != out.end()) std::rotate(out.begin(), all, all + 1);
    return out;
}

/// The part of a block that is special.
void add_special(const AddressBlock& block, std::vector<AddressBlock>& into) {
    for (const AddressBlock& special : special_blocks()) {
        if (special.contains(block)) {
            into.push_back(block);
        } else if (block.contains(special)) {
            into.push_back(special);
        }
    }
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
        std::vector<AddressBlock> part;
        add_special(target.block(), part);
        if (part.empty()) continue;
        auto& list = special[target.scope()];
        list.insert(list.end(), part.begin(), part.end());
    }
    AddressRules rules;
    rules.default_action = policy.default_action();
    rules.deny = to_blocks(std::move(deny));
    rules.allow_special = to_blocks(std::move(special));
    rules.allow = to_blocks(std::move(allow));
    return rules;
}

}  // namespace opensandbox::egress
