#include "egress/rules/host_table.hpp"

#include <algorithm>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::SetKey;
using net::nft::Transaction;

/// What a transaction makes of a link's elements in the sets of a table.
class LinkElements {
  public:
    LinkElements(Transaction& transaction, const std::string& table, const std::string& link)
        : transaction_(transaction), table_(table), link_(link) {}

    void in_set(Family family, const char* set, bool present) {
        change(family, set, HostRuleset::link_layout(), {Element(SetKey().link(link_))}, present);
    }

    void sources(const std::vector<IpAddress>& addresses, bool present) {
        for (const bool v6 : {false, true}) {
            std::vector<Element> elements;
            for (const auto& address : addresses)
                if (address.is_v6() == v6)
                    elements.emplace_back(SetKey().link(link_).address(address));
            change(Family::inet, HostRuleset::sources(v6), HostRuleset::source_layout(v6), elements,
                   present);
        }
    }

    /// The chain that a map names, before and after; empty: none.
    void verdict(const char* map, const std::string& before, const std::string& after) {
        if (before == after) return;
        chain(map, before, false);
        chain(map, after, true);
    }

  private:
    void chain(const char* map, const std::string& name, bool present) {
        if (name.empty()) return;
        Element element(SetKey().link(link_));
        element.chain = name;
        change(Family::inet, map, HostRuleset::verdict_layout(), {element}, present);
    }

    void change(Family family, const char* set, const net::nft::SetLayout& layout,
                const std::vector<Element>& elements, bool present) {
        if (present)
            transaction_.add_elements(family, table_, set, layout, elements);
        else
            transaction_.remove_elements(family, table_, set, layout, elements);
    }

    Transaction& transaction_;
    const std::string& table_;
    const std::string& link_;
};

}  // namespace

HostTable::HostTable(HostOptions options, Sockets sockets)
    : PolicyTable(options.table, HostRuleset::kLearnedSets, std::move(sockets)),
      options_(std::move(options)) {}

Result<HostTable::Guarded*> HostTable::find(const std::string& link) {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end() || !found->second.claimed)
        return Error(ErrorCode::not_found, "egress control does not guard link \"" + link + '"');
    return &found->second;
}

Status HostTable::put_in_force(const std::string& link, Guarded& sandbox, SharedRules rules) {
    const auto digest = rules->digest();
    const bool diverts = options_.interceptor_port != 0 && !rules->intercepted_ports.empty();
    const std::string diversion = diverts ? digest : std::string();
    if (auto made = chains_.ensure(socket_, *rules, digest); !made) return made;

    // Only then what leads there: no packet finds a chain without its rules.
    Transaction transaction;
    LinkElements elements(transaction, options_.table, link);
    elements.in_set(Family::inet, HostRuleset::kLinks, true);
    elements.in_set(Family::arp, HostRuleset::kLinks, true);
    elements.sources(sandbox.addresses, true);
    elements.verdict(HostRuleset::kPolicies, PolicyChains::filter(sandbox.policy),
                     PolicyChains::filter(digest));
    elements.verdict(HostRuleset::kDiversions, PolicyChains::diversion(sandbox.diversion),
                     PolicyChains::diversion(diversion));
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
        LinkElements(transaction, options_.table, sandbox.link).sources(foreign, false);
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
    LinkElements(transaction, options_.table, link)
        .in_set(Family::inet, HostRuleset::kQuarantined, on);
    return transaction.commit(socket_);
}

Result<ConnectionCut> HostTable::remove_sandbox(const std::string& link) {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end()) return cut_all({});
    const auto sandbox = found->second;
    Transaction transaction;
    remove_learned(transaction, link);
    LinkElements elements(transaction, options_.table, link);
    elements.verdict(HostRuleset::kPolicies, PolicyChains::filter(sandbox.policy), {});
    elements.verdict(HostRuleset::kDiversions, PolicyChains::diversion(sandbox.diversion), {});
    elements.sources(sandbox.addresses, false);
    elements.in_set(Family::inet, HostRuleset::kQuarantined, false);
    elements.in_set(Family::inet, HostRuleset::kLinks, false);
    elements.in_set(Family::arp, HostRuleset::kLinks, false);
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
