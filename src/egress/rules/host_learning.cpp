#include "egress/rules/host_table.hpp"

// What a host's sandboxes learn, and lose again.
namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::Transaction;

}  // namespace

void HostTable::put_learned(Transaction& transaction, const std::string& link,
                            const std::string& name,
                            const std::vector<LearnedChange>& changes) const {
    const auto sets = HostRuleset::learned_sets();
    for (const bool v6 : {false, true}) {
        std::vector<Element> elements;
        for (const auto& change : changes) {
            if (change.key.address.is_v6() != v6) continue;
            Element element(learned_key(link, change.key.address, change.key.scope));
            element.lifetime = change.lifetime;
            element.comment = name;
            elements.push_back(std::move(element));
        }
        transaction.put_elements(Family::inet, options_.table, v6 ? sets.v6 : sets.v4,
                                 sets.layout(v6), elements);
    }
}

void HostTable::remove_learned(Transaction& transaction, const std::string& link,
                               const std::vector<LearnedKey>& keys) const {
    const auto sets = HostRuleset::learned_sets();
    for (const bool v6 : {false, true}) {
        std::vector<Element> elements;
        for (const auto& key : keys)
            if (key.address.is_v6() == v6)
                elements.emplace_back(learned_key(link, key.address, key.scope));
        transaction.remove_elements(Family::inet, options_.table, v6 ? sets.v6 : sets.v4,
                                    sets.layout(v6), elements);
    }
}

Status HostTable::apply_loss(const std::string& link, const LearnedAddresses::Loss& loss) {
    if (loss.removed.empty() && loss.shortened.empty()) return {};
    Transaction transaction;
    remove_learned(transaction, link, loss.removed);
    put_learned(transaction, link, {}, loss.shortened);
    return transaction.commit(socket_);
}

Status HostTable::learn(const std::string& link, const std::string& name,
                        const std::vector<IpAddress>& addresses, const std::vector<Scope>& scopes,
                        std::chrono::seconds lifetime) {
    const auto sandbox = find(link);
    if (!sandbox) return sandbox.error();
    std::vector<LearnedKey> keys;
    for (const auto& scope : scopes) {
        const auto parts = parts_of(scope, (*sandbox)->rules->learned_scopes);
        if (!parts) return parts.error();
        for (const auto& part : *parts)
            for (const auto& address : addresses)
                keys.emplace_back(address, part);
    }
    const auto now = Clock::now();
    learned_.expire(now);
    const auto until = now + lifetime;
    const auto changes = learned_.needed(link, keys, until, now);
    if (!changes) return changes.error();
    if (!changes->empty()) {
        Transaction transaction;
        put_learned(transaction, link, name, *changes);
        if (auto committed = transaction.commit(socket_); !committed) return committed;
    }
    learned_.record(link, name, keys, until);
    return {};
}

Result<ConnectionCut> HostTable::revoke(const std::string& link,
                                        const LearnedAddresses::StillAllowed& still_allowed) {
    const auto sandbox = find(link);
    if (!sandbox) return sandbox.error();
    const auto loss = learned_.revoke(link, still_allowed, Clock::now());
    if (auto applied = apply_loss(link, loss); !applied) return applied.error();
    return cut_of(link, **sandbox);
}

}  // namespace opensandbox::egress::rules
