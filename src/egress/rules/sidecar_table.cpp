#include "egress/rules/sidecar_table.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Family;
using net::nft::Transaction;

}  // namespace

SidecarTable::SidecarTable(SidecarOptions options, net::NetlinkSocket socket,
                           std::shared_ptr<SharedTracking> tracking)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      tracking_(std::move(tracking)),
      chains_(options_.table, SidecarRuleset::learned_sets()) {}

Result<SidecarTable> SidecarTable::open(SidecarOptions options, PolicyRules rules) {
    auto socket = open_packet_filter();
    if (!socket) return socket.error();
    auto tracking = net::ConnectionTracking::open();
    if (!tracking) return tracking.error();
    SidecarTable table(std::move(options), std::move(*socket),
                       std::make_shared<SharedTracking>(std::move(*tracking)));
    const auto context = "egress table \"" + table.options_.table + '"';
    while (table.secret_ == 0)
        if (::getrandom(&table.secret_, sizeof(table.secret_), 0) < 0 && errno != EINTR)
            return Error::from_errno(errno, "read random bytes");
    if (auto checked = table.check_links(table.options_.links); !checked)
        return checked.error().within(context);
    if (auto taken = table.take_over(); !taken) return taken.error().within(context);

    rules.keep_scopes(table.learned_.scopes({}));
    auto shared = std::make_shared<const PolicyRules>(std::move(rules));
    if (auto put = table.put_in_force(std::move(shared)); !put) return put.error().within(context);
    if (auto collected = table.chains_.collect(table.socket_); !collected)
        return collected.error().within(context);
    return table;
}

Status SidecarTable::check_links(const std::vector<std::string>& links) const {
    const auto present = outer_links();
    if (!present) return present.error();
    for (const auto& link : links)
        if (std::ranges::find(*present, link) == present->end())
            return Error(ErrorCode::not_found, "there is no link \"" + link + '"');
    return {};
}

Status SidecarTable::set_links(std::vector<std::string> links) {
    if (links == options_.links) return {};
    if (auto checked = check_links(links); !checked) return checked;
    auto before = std::exchange(options_.links, std::move(links));
    auto written = write_base();
    if (!written) options_.links = std::move(before);
    return written;
}

Result<bool> SidecarTable::has_table(Family family) {
    const auto chains = net::nft::list_chains(socket_, family, options_.table);
    if (!chains) return chains.error();
    return !chains->empty();
}

Status SidecarTable::take_over() {
    Status first = write_base();
    if (first || first.error().code() == ErrorCode::permission_denied) {
        if (!first) return first;
    } else {
        // Older kernels have no tables that stay with nobody (6.9), no rules for frames (5.16), or
        // no zones.
        const std::vector<std::tuple<bool, bool, bool>> lesser{
            {true, false, true},  {false, true, true},  {false, false, true}, {true, true, false},
            {true, false, false}, {false, true, false}, {false, false, false}};
        const bool written = std::ranges::any_of(lesser, [&](const auto& choice) {
            std::tie(owned_, parts_.frames, parts_.zones) = choice;
            return write_base().has_value();
        });
        if (!written) return without_part(first.error());
    }
    const auto chains = net::nft::list_chains(socket_, Family::inet, options_.table);
    if (!chains) return chains.error();
    chains_.adopt(*chains);
    for (const bool v6 : {false, true})
        if (auto adopted = adopt_learned(v6); !adopted) return adopted;
    return {};
}

Status SidecarTable::write_base() {
    Transaction transaction;
    const auto frames_before = has_table(Family::netdev);
    if (!frames_before) return frames_before.error();
    if (*frames_before) transaction.delete_table(Family::netdev, options_.table);
    for (const auto family : {Family::inet, Family::arp, Family::netdev}) {
        if (family != Family::inet && !parts_.frames) continue;
        if (owned_)
            transaction.own_table(family, options_.table);
        else
            transaction.add_table(family, options_.table);
    }
    SidecarRuleset(options_, secret_).write(transaction, parts_);
    return transaction.commit(socket_);
}

Status remove_sidecar_table(const std::string& table) {
    auto socket = open_packet_filter();
    if (!socket) return socket.error();
    for (const auto family : {Family::inet, Family::arp, Family::netdev})
        if (auto deleted = delete_table(*socket, family, table); !deleted) return deleted;
    return {};
}

Status SidecarTable::adopt_learned(bool v6) {
    const auto sets = SidecarRuleset::learned_sets();
    const auto elements =
        net::nft::list_elements(socket_, Family::inet, options_.table, v6 ? sets.v6 : sets.v4);
    if (!elements) return elements.error();
    const auto now = Clock::now();
    for (const auto& element : *elements)
        if (const auto key = read_learned_key(element.key, v6, false))
            learned_.record({}, element.comment, {key->second}, now + element.remaining);
    return {};
}

Status SidecarTable::put_in_force(std::shared_ptr<const PolicyRules> rules) {
    const auto digest = rules->digest();
    if (auto made = chains_.ensure(socket_, *rules, digest); !made) return made;
    if (digest != policy_) {
        // Only then what leads there: no packet finds a chain without its rules.
        Transaction transaction;
        SidecarRuleset(options_, secret_)
            .write_policy(
                transaction, PolicyChains::filter(digest),
                rules->intercepted_ports.empty() ? std::string() : PolicyChains::diversion(digest));
        if (auto committed = transaction.commit(socket_); !committed) return committed;
        chains_.use(digest);
        const auto before = std::exchange(policy_, digest);
        // What leads to the old one is gone; what is left of it harms nobody.
        Transaction removal;
        chains_.release(removal, before);
        if (auto removed = removal.commit(socket_); !removed) return removed;
    }
    rules_ = std::move(rules);
    return {};
}

Status SidecarTable::apply_loss(const LearnedAddresses::Loss& loss) {
    if (loss.removed.empty() && loss.shortened.empty()) return {};
    Transaction transaction;
    LearnedWriter(options_.table, SidecarRuleset::learned_sets()).apply(transaction, {}, loss);
    return transaction.commit(socket_);
}

Result<ConnectionCut> SidecarTable::set_policy(
    PolicyRules rules, const LearnedAddresses::StillAllowed& still_allowed) {
    const auto loss = learned_.revoke({}, still_allowed, Clock::now());
    rules.keep_scopes(learned_.scopes({}));
    const auto changed = put_in_force(std::make_shared<const PolicyRules>(std::move(rules)));
    // Also when the change failed: what names lost must not stay open.
    const auto applied = apply_loss(loss);
    if (!changed) return changed.error();
    if (!applied) return applied.error();
    return cut();
}

Status SidecarTable::learn(const std::string& name, const std::vector<IpAddress>& addresses,
                           const std::vector<Scope>& scopes, std::chrono::seconds lifetime) {
    const auto keys = learned_keys(addresses, scopes, rules_->learned_scopes);
    if (!keys) return keys.error();
    const auto now = Clock::now();
    learned_.expire(now);
    const auto until = now + lifetime;
    const auto changes = learned_.needed({}, *keys, until, now);
    if (!changes) return changes.error();
    if (!changes->empty()) {
        Transaction transaction;
        LearnedWriter(options_.table, SidecarRuleset::learned_sets())
            .put(transaction, {}, name, *changes);
        if (auto committed = transaction.commit(socket_); !committed) return committed;
    }
    learned_.record({}, name, *keys, until);
    return {};
}

Result<ConnectionCut> SidecarTable::revoke(const LearnedAddresses::StillAllowed& still_allowed) {
    const auto loss = learned_.revoke({}, still_allowed, Clock::now());
    if (auto applied = apply_loss(loss); !applied) return applied.error();
    return cut();
}

ConnectionCut SidecarTable::cut() const {
    return {tracking_, SidecarRuleset::judged_mark, rules_, learned_.of({}, Clock::now())};
}

Judgement SidecarTable::judge(const IpAddress& destination, std::uint8_t protocol,
                              std::uint16_t port) const {
    return rules::judge(*rules_, destination, protocol, port, [&](const Scope& scope) {
        return learned_.contains({}, {destination, scope}, Clock::now());
    });
}

Result<std::uint64_t> SidecarTable::refused(Reason reason) {
    const auto counter =
        net::nft::read_counter(socket_, Family::inet, options_.table, RuleWriter::refusal(reason));
    if (!counter) return counter.error();
    return counter->packets;
}

Result<std::uint64_t> SidecarTable::raw_frames() {
    if (!parts_.frames) return std::uint64_t{0};
    const auto counter = net::nft::read_counter(socket_, Family::netdev, options_.table,
                                                SidecarRuleset::frames_counter);
    if (!counter) return counter.error();
    return counter->packets;
}

}  // namespace opensandbox::egress::rules
