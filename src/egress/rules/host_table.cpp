#include "egress/rules/host_table.hpp"

#include <algorithm>
#include <set>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::SetKey;
using net::nft::Transaction;

Element link_element(const std::string& link) {
    return Element(SetKey().link(link));
}

Element verdict_element(const std::string& link, std::string chain) {
    Element element = link_element(link);
    element.chain = std::move(chain);
    return element;
}

}  // namespace

HostTable::HostTable(HostOptions options, net::NetlinkSocket socket,
                     std::shared_ptr<SharedTracking> tracking)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      tracking_(std::move(tracking)),
      chains_(options_.table, HostRuleset::learned_sets()) {}

Result<HostTable::Guarded*> HostTable::find(const std::string& link) {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end() || !found->second.claimed)
        return Error(ErrorCode::not_found, "egress control does not guard link \"" + link + '"');
    return &found->second;
}

void HostTable::change_sources(Transaction& transaction, const std::string& link,
                               const std::vector<IpAddress>& addresses, bool present) const {
    for (const bool v6 : {false, true}) {
        std::vector<Element> elements;
        for (const auto& address : addresses)
            if (address.is_v6() == v6) elements.emplace_back(SetKey().link(link).address(address));
        const auto* set = v6 ? HostRuleset::sources6 : HostRuleset::sources4;
        const auto layout = HostRuleset::source_layout(v6);
        if (present)
            transaction.add_elements(Family::inet, options_.table, set, layout, elements);
        else
            transaction.remove_elements(Family::inet, options_.table, set, layout, elements);
    }
}

Status HostTable::put_in_force(const std::string& link, Guarded& sandbox,
                               std::shared_ptr<const PolicyRules> rules) {
    const auto digest = rules->digest();
    const bool diverts = options_.interceptor_port != 0 && !rules->intercepted_ports.empty();
    if (auto made = chains_.ensure(socket_, *rules, digest); !made) return made;

    // Only then what leads there: no packet finds a chain without its rules.
    Transaction transaction;
    const auto layout = HostRuleset::verdict_layout();
    const auto change = [&](const char* map, const std::string& before, const std::string& after) {
        if (before == after) return;
        const std::vector was{verdict_element(link, before)};
        const std::vector will_be{verdict_element(link, after)};
        if (!before.empty())
            transaction.remove_elements(Family::inet, options_.table, map, layout, was);
        if (!after.empty())
            transaction.add_elements(Family::inet, options_.table, map, layout, will_be);
    };
    const auto chain_or_none = [](const std::string& of, std::string name) {
        return of.empty() ? std::string() : std::move(name);
    };
    const std::string diversion = diverts ? digest : std::string();
    const std::vector links{link_element(link)};
    transaction.add_elements(Family::inet, options_.table, HostRuleset::links,
                             HostRuleset::link_layout(), links);
    transaction.add_elements(Family::arp, options_.table, HostRuleset::links,
                             HostRuleset::link_layout(), links);
    change_sources(transaction, link, sandbox.addresses, true);
    change(HostRuleset::policies,
           chain_or_none(sandbox.policy, PolicyChains::filter(sandbox.policy)),
           PolicyChains::filter(digest));
    change(HostRuleset::diversions,
           chain_or_none(sandbox.diversion, PolicyChains::diversion(sandbox.diversion)),
           chain_or_none(diversion, PolicyChains::diversion(digest)));
    if (sandbox.policy != digest) {
        chains_.use(digest);
        if (!sandbox.policy.empty()) chains_.release(transaction, sandbox.policy);
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
                                     const LearnedAddresses::StillAllowed& still_allowed) {
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
                                            const LearnedAddresses::StillAllowed& still_allowed) {
    const auto sandbox = find(link);
    if (!sandbox) return sandbox.error();
    const auto loss = learned_.revoke(link, still_allowed, Clock::now());
    rules.keep_scopes(learned_.scopes(link));
    auto shared = std::make_shared<const PolicyRules>(std::move(rules));
    const auto changed = put_in_force(link, **sandbox, std::move(shared));
    // Also when the change failed: what names lost must not stay open.
    const auto applied = apply_loss(link, loss);
    if (!changed) return changed.error();
    if (!applied) return applied.error();
    return cut_of(link, **sandbox);
}

Status HostTable::set_quarantine(const std::string& link, bool on) {
    if (const auto sandbox = find(link); !sandbox) return sandbox.error();
    Transaction transaction;
    const std::vector elements{link_element(link)};
    const auto layout = HostRuleset::link_layout();
    if (on)
        transaction.add_elements(Family::inet, options_.table, HostRuleset::quarantined, layout,
                                 elements);
    else
        transaction.remove_elements(Family::inet, options_.table, HostRuleset::quarantined, layout,
                                    elements);
    return transaction.commit(socket_);
}

Result<ConnectionCut> HostTable::remove_sandbox(const std::string& link) {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end()) return ConnectionCut(tracking_, {});
    const auto sandbox = found->second;
    Transaction transaction;
    const std::vector elements{link_element(link)};
    const auto remove = [&](Family family, const char* set) {
        transaction.remove_elements(family, options_.table, set, HostRuleset::link_layout(),
                                    elements);
    };
    const auto layout = HostRuleset::verdict_layout();
    const auto clear = [&](const char* map, const std::string& chain) {
        const std::vector entry{verdict_element(link, chain)};
        transaction.remove_elements(Family::inet, options_.table, map, layout, entry);
    };
    learned_writer().remove(transaction, link, learned_.of(link, {}));
    if (!sandbox.policy.empty()) clear(HostRuleset::policies, PolicyChains::filter(sandbox.policy));
    if (!sandbox.diversion.empty())
        clear(HostRuleset::diversions, PolicyChains::diversion(sandbox.diversion));
    change_sources(transaction, link, sandbox.addresses, false);
    remove(Family::inet, HostRuleset::quarantined);
    remove(Family::inet, HostRuleset::links);
    remove(Family::arp, HostRuleset::links);
    if (!sandbox.policy.empty()) chains_.release(transaction, sandbox.policy);
    if (auto committed = transaction.commit(socket_); !committed) {
        if (auto adopted = adopt_sandboxes(); !adopted) return adopted.error();
        return committed.error();
    }
    learned_.forget(link);
    sandboxes_.erase(link);
    return ConnectionCut(tracking_, sandbox.addresses);
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
    return {tracking_, sandbox.addresses, sandbox.rules, learned_.of(link, Clock::now())};
}

Judgement HostTable::judge(const std::string& link, const IpAddress& destination,
                           std::uint8_t protocol, std::uint16_t port) const {
    const auto found = sandboxes_.find(link);
    if (found == sandboxes_.end()) return Judgement::allowed;
    if (!found->second.rules) return Judgement::refused;
    return rules::judge(*found->second.rules, destination, protocol, port, [&](const Scope& scope) {
        return learned_.contains(link, {destination, scope}, Clock::now());
    });
}

Result<std::uint64_t> HostTable::refused(Reason reason) {
    const auto counter =
        net::nft::read_counter(socket_, Family::inet, options_.table, RuleWriter::refusal(reason));
    if (!counter) return counter.error();
    return counter->packets;
}

Result<std::uint64_t> HostTable::spoofed() {
    const auto counter =
        net::nft::read_counter(socket_, Family::inet, options_.table, HostRuleset::spoofed_counter);
    if (!counter) return counter.error();
    return counter->packets;
}

}  // namespace opensandbox::egress::rules
