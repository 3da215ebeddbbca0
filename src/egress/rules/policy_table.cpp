#include "egress/rules/policy_table.hpp"

#include <linux/netlink.h>

#include <optional>
#include <utility>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::KeyReader;
using net::nft::ListedElement;
using net::nft::SetKey;
using net::nft::Transaction;

Error without_packet_filter(const Error& error) {
    return {ErrorCode::unsupported,
            "egress control needs nf_tables, which this kernel does not offer (rules of iptables "
            "alone do not do): " +
                error.message()};
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

/// Each address with each of the parts that a scope is made of; invalid_argument when the policy's
/// parts do not make it up.
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

/// `link` is empty where keys have none.
SetKey learned_key(const std::string& link, const LearnedKey& learned) {
    const auto& scope = learned.scope;
    SetKey key;
    if (!link.empty()) key.link(link);
    return key.address(learned.address).protocol(scope.protocol).port(scope.first).port(scope.last);
}

}  // namespace

Status remove_tables(const std::string& name, std::initializer_list<Family> families) {
    auto socket = open_packet_filter();
    if (!socket) return socket.error();
    for (const auto family : families) {
        Transaction transaction;
        transaction.delete_table(family, name);
        auto deleted = transaction.commit(*socket);
        if (!deleted && deleted.error().code() != ErrorCode::not_found) return deleted;
    }
    return {};
}

Result<PolicyTable::Sockets> PolicyTable::open_sockets() {
    auto filter = open_packet_filter();
    if (!filter) return filter.error();
    auto tracking = net::ConnectionTracking::open();
    if (!tracking) return tracking.error();
    return Sockets{std::move(*filter), std::make_shared<SharedTracking>(std::move(*tracking))};
}

PolicyTable::PolicyTable(std::string name, LearnedSets sets, Sockets sockets)
    : socket_(std::move(sockets.filter)),
      chains_(name, sets),
      name_(std::move(name)),
      sets_(sets),
      tracking_(std::move(sockets.tracking)) {}

Status PolicyTable::make(std::initializer_list<KernelParts> lesser,
                         const std::function<Status()>& write) {
    const auto written = write();
    if (written || written.error().code() == ErrorCode::permission_denied) return written;
    for (const auto& parts : lesser) {
        parts_ = parts;
        if (write()) return {};
    }
    return Error(ErrorCode::unsupported,
                 "this kernel lacks a part of nf_tables that egress control needs: " +
                     written.error().message());
}

void PolicyTable::hold(Transaction& transaction, Family family) const {
    if (parts_.owned)
        transaction.own_table(family, name_);
    else
        transaction.add_table(family, name_);
}

Status PolicyTable::adopt_chains() {
    const auto chains = net::nft::list_chains(socket_, Family::inet, name_);
    if (!chains) return chains.error();
    chains_.adopt(*chains);
    return {};
}

Result<std::vector<ListedElement>> PolicyTable::list(Family family, const std::string& set) {
    auto elements = net::nft::list_elements(socket_, family, name_, set);
    if (!elements && elements.error().code() == ErrorCode::not_found)
        return std::vector<ListedElement>();
    return elements;
}

IpAddress PolicyTable::read_address(KeyReader& key, bool v6) {
    if (v6) return key.ipv6().value_or(net::Ipv6Address());
    return key.ipv4().value_or(net::Ipv4Address());
}

Status PolicyTable::adopt_learned() {
    for (const bool v6 : {false, true}) {
        const auto elements = list(Family::inet, LearnedSets::name(v6));
        if (!elements) return elements.error();
        const auto now = Clock::now();
        for (const auto& element : *elements) {
            KeyReader key(element.key);
            const auto link = sets_.by_link ? key.link() : std::string();
            const auto address = read_address(key, v6);
            const auto protocol = key.protocol();
            const auto first = key.port();
            const auto last = key.port();
            // A malformed one ends before its last field.
            if (!last) continue;
            learned_.record(*link, element.comment, {{address, Scope(*protocol, *first, *last)}},
                            now + element.remaining);
        }
    }
    return {};
}

Result<std::uint64_t> PolicyTable::packets(Family family, const std::string& counter) {
    const auto value = net::nft::read_counter(socket_, family, name_, counter);
    if (!value) return value.error();
    return value->packets;
}

Status PolicyTable::change_policy(const std::string& link, PolicyRules rules,
                                  const StillAllowed& still_allowed,
                                  const std::function<Status(SharedRules)>& enforce) {
    const auto loss = learned_.revoke(link, still_allowed, Clock::now());
    rules.keep_scopes(learned_.scopes(link));
    auto changed = enforce(std::make_shared<const PolicyRules>(std::move(rules)));
    // Also when the change failed: what names lost must not stay open.
    auto closed = close(link, loss);
    return changed ? closed : changed;
}

Status PolicyTable::learn(const std::string& link, const PolicyRules& rules,
                          const std::string& name, const std::vector<IpAddress>& addresses,
                          const std::vector<Scope>& scopes, std::chrono::seconds lifetime) {
    const auto keys = learned_keys(addresses, scopes, rules.learned_scopes);
    if (!keys) return keys.error();
    const auto now = Clock::now();
    learned_.expire(now);
    const auto until = now + lifetime;
    const auto changes = learned_.needed(link, *keys, until, now);
    if (!changes) return changes.error();
    if (!changes->empty()) {
        Transaction transaction;
        put(transaction, link, name, *changes);
        if (auto committed = transaction.commit(socket_); !committed) return committed;
    }
    learned_.record(link, name, *keys, until);
    return {};
}

Status PolicyTable::revoke(const std::string& link, const StillAllowed& still_allowed) {
    return close(link, learned_.revoke(link, still_allowed, Clock::now()));
}

Status PolicyTable::close(const std::string& link, const LearnedAddresses::Loss& loss) {
    if (loss.removed.empty() && loss.shortened.empty()) return {};
    Transaction transaction;
    remove(transaction, link, loss.removed);
    put(transaction, link, {}, loss.shortened);
    return transaction.commit(socket_);
}

void PolicyTable::remove_learned(Transaction& transaction, const std::string& link) const {
    remove(transaction, link, learned_.of(link, {}));
}

void PolicyTable::put(Transaction& transaction, const std::string& link, const std::string& name,
                      const std::vector<LearnedChange>& changes) const {
    for (const bool v6 : {false, true}) {
        std::vector<Element> elements;
        for (const auto& change : changes) {
            if (change.key.address.is_v6() != v6) continue;
            Element element(learned_key(link, change.key));
            element.lifetime = change.lifetime;
            element.comment = name;
            elements.push_back(std::move(element));
        }
        transaction.put_elements(Family::inet, name_, LearnedSets::name(v6), sets_.layout(v6),
                                 elements);
    }
}

void PolicyTable::remove(Transaction& transaction, const std::string& link,
                         const std::vector<LearnedKey>& keys) const {
    for (const bool v6 : {false, true}) {
        std::vector<Element> elements;
        for (const auto& key : keys)
            if (key.address.is_v6() == v6) elements.emplace_back(learned_key(link, key));
        transaction.remove_elements(Family::inet, name_, LearnedSets::name(v6), sets_.layout(v6),
                                    elements);
    }
}

Judgement PolicyTable::judge(const std::string& link, const PolicyRules& rules,
                             const IpAddress& destination, std::uint8_t protocol,
                             std::uint16_t port) const {
    return rules::judge(rules, destination, protocol, port, [&](const Scope& scope) {
        return learned_.contains(link, {destination, scope}, Clock::now());
    });
}

}  // namespace opensandbox::egress::rules
