#include "egress/rules/host_table.hpp"

#include <algorithm>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::SetKey;
using net::nft::Transaction;

}  // namespace

HostTable::HostTable(HostOptions options, Sockets sockets)
    : PolicyTable(options.table, HostRuleset::learned_sets, std::move(sockets)),
      options_(std::move(options)) {}

Result<HostTable::Guarded*> HostTable::find(const std::string& link) {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end() || !found->second.claimed)
        return Error(ErrorCode::not_found, "egress control does not guard link \"" + link + '"');
    return &found->second;
}

void HostTable::change(Transaction& transaction, Family family, const char* set,
                       const net::nft::SetLayout& layout, const std::vector<Element>& elements,
                       bool present) const {
    if (present)
        transaction.add_elements(family, options_.table, set, layout, elements);
    else
        transaction.remove_elements(family, options_.table, set, layout, elements);
}

void HostTable::change_link(Transaction& transaction, Family family, const char* set,
                            const std::string& link, bool present) const {
    change(transaction, family, set, HostRuleset::link_layout(), {Element(SetKey().link(link))},
           present);
}

void HostTable::change_sources(Transaction& transaction, const std::string& link,
                               const std::vector<IpAddress>& addresses, bool present) const {
    for (const bool v6 : {false, true}) {
        std::vector<Element> elements;
        for (const auto& address : addresses)
            if (address.is_v6() == v6) elements.emplace_back(SetKey().link(link).address(address));
        change(transaction, Family::inet, HostRuleset::sources(v6), HostRuleset::source_layout(v6),
               elements, present);
    }
}

void HostTable::change_verdict(Transaction& transaction, const char* map, const std::string& link,
                               const std::string& before, const std::string& after) const {
    if (before == after) return;
    const auto change_to = [&](const std::string& chain, bool present) {
        if (chain.empty()) return;
        Element element(SetKey().link(link));
        element.chain = chain;
        change(transaction, Family::inet, map, HostRuleset::verdict_layout(), {element}, present);
    };
    change_to(before, false);
    change_to(after, true);
}

Status HostTable::put_in_force(const std::string& link, Guarded& sandbox, SharedRules rules) {
    const auto digest = rules->digest();
    const bool diverts = options_.interceptor_port != 0 && !rules->intercepted_ports.empty();
    const std::string diversion = diverts ? digest : std::string();
    if (auto made = chains_.ensure(socket_, *rules, digest); !made) return made;

    // Only then what leads there: no packet finds a chain without its rules.
    Transaction transaction;
    change_link(transaction, Family::inet, HostRuleset::links, link, true);
    change_link(transaction, Family::arp, HostRuleset::links, link, true);
    change_sources(transaction, link, sandbox.addresses, true);
    change_verdict(transaction, HostRuleset::policies, link, PolicyChains::filter(sandbox.policy),
                   PolicyChains::filter(digest));
    change_verdict(transaction, HostRuleset::diversions, link,
                   PolicyChains::diversion(sandbox.diversion), PolicyChains::diversion(diversion));
    if (sandbox.policy != digest) {
        chains_.use(digest);
        chains_.release(transaction, sandbox.policy);
    }
    if (auto committed = transaction.commit(socket_); !committed) {
        // What is there is no longer known for certain: ask.
        if (auto adopted = adopt_sandboxes(); !adopted) return adopted;
        return committed;
    }
    sandbox.policy = digest;
    sandbox.diversion = diversion;
    sandbox.rules = std::move(rules);
    return {};
}

Result<ConnectionCut> HostTable::add(const GuardedSandbox& sandbox, PolicyRules rules,
                                     const StillAllowed& still_allowed) {
    if (sandbox.link.empty() || sandbox.link.size() > 15)
        return Error(ErrorCode::invalid_argument,
                     "link \"" + sandbox.link + "\": must be a name of 1 to 15 bytes");
    const auto [at, fresh] = sandboxes_.try_emplace(sandbox.link);
    auto& guarded = at->second;
    if (guarded.claimed)
        return Error(ErrorCode::conflict,
                     "egress control guards link \"" + sandbox.link + "\" already");
    std::vector<IpAddress> foreign;
    for (const auto& address : guarded.addresses)
        if (std::ranges::find(sandbox.addresses, address) == sandbox.addresses.end())
            foreign.push_back(address);
    if (!foreign.empty()) {
        Transaction transaction;
        change_sources(transaction, sandbox.link, foreign, false);
        if (auto committed = transaction.commit(socket_); !committed) return committed.error();
    }
    guarded.addresses = sandbox.addresses;
    guarded.claimed = true;
    auto cut = set_policy(sandbox.link, std::move(rules), still_allowed);
    if (!cut) {
        guarded.claimed = false;
        if (fresh) sandboxes_.erase(sandbox.link);
    }
    return cut;
}

Result<ConnectionCut> HostTable::set_policy(const std::string& link, PolicyRules rules,
                                            const StillAllowed& still_allowed) {
    const auto sandbox = find(link);
    if (!sandbox) return sandbox.error();
    const auto changed = change_policy(
        link, std::move(rules), still_allowed,
        [&](SharedRules shared) { return put_in_force(link, **sandbox, std::move(shared)); });
    if (!changed) return changed.error();
    return cut_of(link, **sandbox);
}

Status HostTable::set_quarantine(const std::string& link, bool on) {
    if (const auto sandbox = find(link); !sandbox) return sandbox.error();
    Transaction transaction;
    change_link(transaction, Family::inet, HostRuleset::quarantined, link, on);
    return transaction.commit(socket_);
}

Result<ConnectionCut> HostTable::remove_sandbox(const std::string& link) {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end()) return cut_all({});
    const auto sandbox = found->second;
    Transaction transaction;
    remove_learned(transaction, link);
    change_verdict(transaction, HostRuleset::policies, link, PolicyChains::filter(sandbox.policy),
                   {});
    change_verdict(transaction, HostRuleset::diversions, link,
                   PolicyChains::diversion(sandbox.diversion), {});
    change_sources(transaction, link, sandbox.addresses, false);
    change_link(transaction, Family::inet, HostRuleset::quarantined, link, false);
    change_link(transaction, Family::inet, HostRuleset::links, link, false);
    change_link(transaction, Family::arp, HostRuleset::links, link, false);
    chains_.release(transaction, sandbox.policy);
    if (auto committed = transaction.commit(socket_); !committed) {
        if (auto adopted = adopt_sandboxes(); !adopted) return adopted.error();
        return committed.error();
    }
    learned_.forget(link);
    sandboxes_.erase(link);
    return cut_all(sandbox.addresses);
}

std::vector<std::string> HostTable::unclaimed() const {
    std::vector<std::string> links;
    for (const auto& [link, sandbox] : sandboxes_)
        if (!sandbox.claimed) links.push_back(link);
    return links;
}

std::optional<ConnectionCut> HostTable::cut(const std::string& link) const {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end()) return std::nullopt;
    return cut_of(link, found->second);
}

ConnectionCut HostTable::cut_of(const std::string& link, const Guarded& sandbox) const {
    return PolicyTable::cut(link, sandbox.addresses, sandbox.rules);
}

Status HostTable::learn(const std::string& link, const std::string& name,
                        const std::vector<IpAddress>& addresses, const std::vector<Scope>& scopes,
                        std::chrono::seconds lifetime) {
    const auto sandbox = find(link);
    if (!sandbox) return sandbox.error();
    return PolicyTable::learn(link, *(*sandbox)->rules, name, addresses, scopes, lifetime);
}

Result<ConnectionCut> HostTable::revoke(const std::string& link,
                                        const StillAllowed& still_allowed) {
    const auto sandbox = find(link);
    if (!sandbox) return sandbox.error();
    if (auto revoked = PolicyTable::revoke(link, still_allowed); !revoked) return revoked.error();
    return cut_of(link, **sandbox);
}

Judgement HostTable::judge(const std::string& link, const IpAddress& destination,
                           std::uint8_t protocol, std::uint16_t port) const {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end()) return Judgement::allowed;
    if (!found->second.rules) return Judgement::refused;
    return PolicyTable::judge(link, *found->second.rules, destination, protocol, port);
}

}  // namespace opensandbox::egress::rules
