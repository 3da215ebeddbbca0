#include "egress/filter/learning.hpp"

#include "egress/filter/packet_policy.hpp"

#include <string>
#include <unordered_map>
#include <utility>

namespace opensandbox::egress {

namespace {

/// Connections outlive the time for which an address was learned; a name may stand behind its
/// address for as long.
constexpr std::chrono::hours kNamesKept{1};

}  // namespace

OpenableAddresses openable_addresses(const EffectivePolicy& policy,
                                     const std::vector<dns::LearnedAddress>& addresses,
                                     const PortSet& granted) {
    OpenableAddresses by_lifetime;
    for (const dns::LearnedAddress& learned : addresses) {
        if (policy.learnable(learned.address, granted).empty()) continue;
        by_lifetime[learned.lifetime].push_back(learned.address);
    }
    return by_lifetime;
}

void note_resolved(ResolvedNames& resolved, const std::string& name,
                   const OpenableAddresses& addresses) {
    const auto now = ResolvedNames::Time::clock::now();
    for (const auto& [lifetime, of_lifetime] : addresses) {
        for (const net::Address& address : of_lifetime)
            resolved.note(name, address, now + lifetime + kNamesKept, now);
    }
}

rules::LearnedAddresses::StillAllowed granted_by(PolicyPtr policy) {
    return [policy = std::move(policy), judged = std::unordered_map<std::string, PortSet>()](
               const std::string& name, const rules::Scope& scope) mutable {
        // Without its name an address has nobody who answers for it.
        if (name.empty()) return false;
        const auto [found, fresh] = judged.try_emplace(name);
        if (fresh) found->second = policy->judge_name(name).granted;
        return holds(found->second, scope);
    };
}

std::string join_addresses(const std::vector<dns::LearnedAddress>& addresses) {
    std::string text;
    for (const dns::LearnedAddress& address : addresses)
        text += (text.empty() ? "" : ",") + address.address.to_string();
    return text;
}

}  // namespace opensandbox::egress
