#include "egress/rules/learned_sets.hpp"

#include <linux/netlink.h>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::KeyReader;
using net::nft::Transaction;

Error without_packet_filter(const Error& error) {
    return {ErrorCode::unsupported,
            "egress control needs nf_tables, which this kernel does not offer (rules of iptables "
            "alone do not do): " +
                error.message()};
}

}  // namespace

void LearnedWriter::put(Transaction& transaction, const std::string& link, const std::string& name,
                        const std::vector<LearnedChange>& changes) const {
    for (const bool v6 : {false, true}) {
        std::vector<Element> elements;
        for (const auto& change : changes) {
            if (change.key.address.is_v6() != v6) continue;
            Element element(learned_key(link, change.key.address, change.key.scope));
            element.lifetime = change.lifetime;
            element.comment = name;
            elements.push_back(std::move(element));
        }
        transaction.put_elements(Family::inet, table_, v6 ? sets_.v6 : sets_.v4, sets_.layout(v6),
                                 elements);
    }
}

void LearnedWriter::remove(Transaction& transaction, const std::string& link,
                           const std::vector<LearnedKey>& keys) const {
    for (const bool v6 : {false, true}) {
        std::vector<Element> elements;
        for (const auto& key : keys)
            if (key.address.is_v6() == v6)
                elements.emplace_back(learned_key(link, key.address, key.scope));
        transaction.remove_elements(Family::inet, table_, v6 ? sets_.v6 : sets_.v4,
                                    sets_.layout(v6), elements);
    }
}

void LearnedWriter::apply(Transaction& transaction, const std::string& link,
                          const LearnedAddresses::Loss& loss) const {
    remove(transaction, link, loss.removed);
    put(transaction, link, {}, loss.shortened);
}

std::optional<std::pair<std::string, LearnedKey>> read_learned_key(
    std::span<const std::uint8_t> bytes, bool v6, bool by_link) {
    KeyReader key(bytes);
    const auto link = by_link ? key.link() : std::string();
    IpAddress address;
    if (v6)
        address = key.ipv6().value_or(net::Ipv6Address());
    else
        address = key.ipv4().value_or(net::Ipv4Address());
    const auto protocol = key.protocol();
    const auto first = key.port();
    const auto last = key.port();
    if (!last) return std::nullopt;
    return std::pair(*link, LearnedKey(address, Scope(*protocol, *first, *last)));
}

Result<std::vector<LearnedKey>> learned_keys(const std::vector<IpAddress>& addresses,
                                             const std::vector<Scope>& scopes,
                                             const std::vector<Scope>& parts) {
    std::vector<LearnedKey> keys;
    for (const auto& scope : scopes) {
        const auto of_scope = parts_of(scope, parts);
        if (!of_scope) return of_scope.error();
        for (const auto& part : *of_scope)
            for (const auto& address : addresses)
                keys.emplace_back(address, part);
    }
    return keys;
}

Result<net::NetlinkSocket> open_packet_filter() {
    auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER);
    if (!socket) return without_packet_filter(socket.error());
    // Any question shows whether somebody answers.
    if (const auto answer = net::nft::list_chains(*socket, Family::inet, "-"); !answer) {
        if (answer.error().code() == ErrorCode::permission_denied) return answer.error();
        return without_packet_filter(answer.error());
    }
    return socket;
}

Error without_part(const Error& refused) {
    if (refused.code() == ErrorCode::permission_denied) return refused;
    return {
        ErrorCode::unsupported,
        "this kernel lacks a part of nf_tables that egress control needs: " + refused.message()};
}

Status delete_table(net::NetlinkSocket& socket, Family family, const std::string& table) {
    Transaction transaction;
    transaction.delete_table(family, table);
    auto deleted = transaction.commit(socket);
    if (!deleted && deleted.error().code() == ErrorCode::not_found) return {};
    return deleted;
}

}  // namespace opensandbox::egress::rules
