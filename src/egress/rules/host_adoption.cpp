#include "egress/rules/host_table.hpp"

#include <algorithm>

// How a host's table is taken over, with what an earlier owner left in it.
namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::KeyReader;
using net::nft::SetKey;
using net::nft::Transaction;

}  // namespace

Result<HostTable> HostTable::open(HostOptions options) {
    auto sockets = open_sockets();
    if (!sockets) return sockets.error();
    HostTable table(std::move(options), std::move(*sockets));
    KernelParts unowned;
    unowned.owned = false;
    auto opened = table.make({unowned}, [&] { return table.write_base(); });
    if (opened) opened = table.adopt();
    if (!opened) return opened.error().within(table.context());
    return table;
}

Status HostTable::remove(const std::string& table) {
    return remove_tables(table, {Family::inet, Family::arp});
}

Status HostTable::write_base() {
    auto chains = net::nft::list_chains(socket_, Family::inet, options_.table);
    if (!chains) return chains.error();
    const bool exists = !chains->empty();
    const bool fits =
        std::ranges::find(*chains, std::string(HostRuleset::kVersionChain)) != chains->end();

    Transaction transaction;
    for (const auto family : {Family::inet, Family::arp}) {
        if (exists && !fits) transaction.delete_table(family, options_.table);
        hold(transaction, family);
    }
    if (exists && !fits) {
        // Of another version: who is guarded stays so, with nothing allowed until it is said anew.
        for (const auto family : {Family::inet, Family::arp}) {
            const auto links = links_in_force(family);
            if (!links) return links.error();
            transaction.add_set(family, options_.table, HostRuleset::kLinks,
                                HostRuleset::link_layout());
            std::vector<Element> elements;
            for (const auto& link : *links)
                elements.emplace_back(SetKey().link(link));
            transaction.add_elements(family, options_.table, HostRuleset::kLinks,
                                     HostRuleset::link_layout(), elements);
        }
    }
    HostRuleset(options_).write(transaction);
    return transaction.commit(socket_);
}

Result<std::vector<std::string>> HostTable::links_in_force(Family family) {
    const auto elements = list(family, HostRuleset::kLinks);
    if (!elements) return elements.error();
    std::vector<std::string> links;
    for (const auto& element : *elements)
        if (auto link = KeyReader(element.key).link(); link && !link->empty())
            links.push_back(std::move(*link));
    return links;
}

Status HostTable::adopt() {
    if (auto adopted = adopt_sandboxes(); !adopted) return adopted;
    if (auto collected = chains_.collect(socket_); !collected) return collected;
    return adopt_learned();
}

Status HostTable::adopt_sandboxes() {
    const auto links = links_in_force(Family::inet);
    if (!links) return links.error();
    const auto policies = list(Family::inet, HostRuleset::kPolicies);
    if (!policies) return policies.error();
    const auto diversions = list(Family::inet, HostRuleset::kDiversions);
    if (!diversions) return diversions.error();
    if (auto adopted = adopt_chains(); !adopted) return adopted;

    for (auto& [link, sandbox] : sandboxes_)
        sandbox.policy = sandbox.diversion = {};
    for (const auto& link : *links)
        sandboxes_.try_emplace(link);
    for (const auto& element : *policies) {
        auto& sandbox = sandboxes_[KeyReader(element.key).link().value_or("")];
        sandbox.policy = PolicyChains::digest_of(element.chain);
        if (!sandbox.policy.empty()) chains_.use(sandbox.policy);
    }
    for (const auto& element : *diversions)
        sandboxes_[KeyReader(element.key).link().value_or("")].diversion =
            PolicyChains::digest_of(element.chain);
    for (const bool v6 : {false, true}) {
        const auto sources = list(Family::inet, HostRuleset::sources(v6));
        if (!sources) return sources.error();
        for (const auto& element : *sources) {
            KeyReader key(element.key);
            const auto link = key.link();
            auto& addresses = sandboxes_[link.value_or("")].addresses;
            const auto address = read_address(key, v6);
            if (std::ranges::find(addresses, address) == addresses.end())
                addresses.push_back(address);
        }
    }
    return {};
}

}  // namespace opensandbox::egress::rules
