#include "egress/rules/host_table.hpp"

#include <algorithm>
#include <set>

// How a host's table is taken over, with what an earlier owner left in it.
namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::KeyReader;
using net::nft::ListedElement;
using net::nft::SetKey;
using net::nft::Transaction;

/// A set that is not there is an empty one.
Result<std::vector<ListedElement>> list(net::NetlinkSocket& socket, Family family,
                                        const std::string& table, const std::string& set) {
    auto elements = net::nft::list_elements(socket, family, table, set);
    if (!elements && elements.error().code() == ErrorCode::not_found)
        return std::vector<ListedElement>();
    return elements;
}

std::string digest_of(const std::string& chain, std::string_view prefix) {
    return chain.starts_with(prefix) ? chain.substr(prefix.size()) : std::string();
}

}  // namespace

Result<HostTable> HostTable::open(HostOptions options) {
    auto socket = open_packet_filter();
    if (!socket) return socket.error();
    auto tracking = net::ConnectionTracking::open();
    if (!tracking) return tracking.error();
    HostTable table(std::move(options), std::move(*socket),
                    std::make_shared<SharedTracking>(std::move(*tracking)));
    const auto context = "egress table \"" + table.options_.table + '"';
    if (auto owned = table.own(); !owned) return owned.error().within(context);
    if (auto adopted = table.adopt(); !adopted) return adopted.error().within(context);
    return table;
}

Status HostTable::remove(const std::string& table) {
    auto socket = open_packet_filter();
    if (!socket) return socket.error();
    for (const auto family : {Family::inet, Family::arp})
        if (auto deleted = delete_table(*socket, family, table); !deleted) return deleted;
    return {};
}

Status HostTable::own() {
    auto written = write_base(true);
    if (written || written.error().code() == ErrorCode::permission_denied) return written;
    // Before Linux 6.9 tables have no owner that may end.
    const auto plain = write_base(false);
    if (!plain) return without_part(written.error());
    protected_ = false;
    return {};
}

Status HostTable::write_base(bool owned) {
    auto chains = net::nft::list_chains(socket_, Family::inet, options_.table);
    if (!chains) return chains.error();
    const bool exists = !chains->empty();
    const bool fits =
        std::ranges::find(*chains, std::string(HostRuleset::version_chain)) != chains->end();

    Transaction transaction;
    for (const auto family : {Family::inet, Family::arp}) {
        if (exists && !fits) transaction.delete_table(family, options_.table);
        if (owned)
            transaction.own_table(family, options_.table);
        else
            transaction.add_table(family, options_.table);
    }
    if (exists && !fits) {
        // Of another version: who is guarded stays so, with nothing allowed until it is said anew.
        for (const auto family : {Family::inet, Family::arp}) {
            const auto links = links_in_force(family);
            if (!links) return links.error();
            transaction.add_set(family, options_.table, HostRuleset::links,
                                HostRuleset::link_layout());
            std::vector<Element> elements;
            for (const auto& link : *links)
                elements.emplace_back(SetKey().link(link));
            transaction.add_elements(family, options_.table, HostRuleset::links,
                                     HostRuleset::link_layout(), elements);
        }
    }
    HostRuleset(options_).write(transaction);
    return transaction.commit(socket_);
}

Result<std::vector<std::string>> HostTable::links_in_force(Family family) {
    const auto elements = list(socket_, family, options_.table, HostRuleset::links);
    if (!elements) return elements.error();
    std::vector<std::string> links;
    for (const auto& element : *elements)
        if (auto link = KeyReader(element.key).link(); link && !link->empty())
            links.push_back(std::move(*link));
    return links;
}

Status HostTable::adopt() {
    const auto chains = net::nft::list_chains(socket_, Family::inet, options_.table);
    if (!chains) return chains.error();
    chains_.adopt(*chains);
    if (auto adopted = adopt_sandboxes(); !adopted) return adopted;
    if (auto collected = chains_.collect(socket_); !collected) return collected;
    for (const bool v6 : {false, true})
        if (auto adopted = adopt_learned(v6); !adopted) return adopted;
    return {};
}

Status HostTable::adopt_sandboxes() {
    const auto chains = net::nft::list_chains(socket_, Family::inet, options_.table);
    if (!chains) return chains.error();
    const auto links = links_in_force(Family::inet);
    if (!links) return links.error();
    const auto policies = list(socket_, Family::inet, options_.table, HostRuleset::policies);
    if (!policies) return policies.error();
    const auto diversions = list(socket_, Family::inet, options_.table, HostRuleset::diversions);
    if (!diversions) return diversions.error();

    chains_.adopt(*chains);
    for (auto& [link, sandbox] : sandboxes_)
        sandbox.policy = sandbox.diversion = {};
    for (const auto& link : *links)
        sandboxes_.try_emplace(link);
    for (const auto& element : *policies) {
        auto& sandbox = sandboxes_[KeyReader(element.key).link().value_or("")];
        sandbox.policy = digest_of(element.chain, "policy_");
        if (!sandbox.policy.empty()) chains_.use(sandbox.policy);
    }
    for (const auto& element : *diversions)
        sandboxes_[KeyReader(element.key).link().value_or("")].diversion =
            digest_of(element.chain, "divert_");
    for (const bool v6 : {false, true}) {
        const auto* set = v6 ? HostRuleset::sources6 : HostRuleset::sources4;
        const auto sources = list(socket_, Family::inet, options_.table, set);
        if (!sources) return sources.error();
        for (const auto& element : *sources) {
            KeyReader key(element.key);
            const auto link = key.link();
            auto& addresses = sandboxes_[link.value_or("")].addresses;
            IpAddress address;
            if (v6)
                address = key.ipv6().value_or(net::Ipv6Address());
            else
                address = key.ipv4().value_or(net::Ipv4Address());
            if (std::ranges::find(addresses, address) == addresses.end())
                addresses.push_back(address);
        }
    }
    return {};
}

Status HostTable::adopt_learned(bool v6) {
    const auto sets = HostRuleset::learned_sets();
    const auto elements = list(socket_, Family::inet, options_.table, v6 ? sets.v6 : sets.v4);
    if (!elements) return elements.error();
    const auto now = Clock::now();
    for (const auto& element : *elements)
        if (const auto key = read_learned_key(element.key, v6, true))
            learned_.record(key->first, element.comment, {key->second}, now + element.remaining);
    return {};
}

}  // namespace opensandbox::egress::rules
