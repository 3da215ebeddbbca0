#include "egress/rules/sidecar_table.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Family;
using net::nft::Transaction;

}  // namespace

SidecarTable::SidecarTable(SidecarOptions options, Sockets sockets)
    : PolicyTable(options.table, SidecarRuleset::kLearnedSets, std::move(sockets)),
      options_(std::move(options)) {}

Result<SidecarTable> SidecarTable::open(SidecarOptions options, PolicyRules rules) {
    auto sockets = open_sockets();
    if (!sockets) return sockets.error();
    SidecarTable table(std::move(options), std::move(*sockets));
    while (table.secret_ == 0)
        if (::getrandom(&table.secret_, sizeof(table.secret_), 0) < 0 && errno != EINTR)
            return Error::from_errno(errno, "read random bytes");
    auto opened = table.check_links(table.options_.links);
    if (opened) opened = table.take_over();
    if (opened) {
        rules.keep_scopes(table.learned_.scopes({}));
        opened = table.put_in_force(std::make_shared<const PolicyRules>(std::move(rules)));
    }
    if (opened) opened = table.chains_.collect(table.socket_);
    if (!opened) return opened.error().within(table.context());
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

Status SidecarTable::take_over() {
    // Without an owner (before Linux 6.9), rules for frames (5.16), or zones.
    auto made = make({{true, false, true},
                      {false, true, true},
                      {false, false, true},
                      {true, true, false},
                      {true, false, false},
                      {false, true, false},
                      {false, false, false}},
                     [this] { return write_base(); });
    if (made) made = adopt_chains();
    if (!made) return made;
    return adopt_learned();
}

Status SidecarTable::write_base() {
    Transaction transaction;
    const auto frames_before = net::nft::list_chains(socket_, Family::netdev, options_.table);
    if (!frames_before) return frames_before.error();
    if (!frames_before->empty()) transaction.delete_table(Family::netdev, options_.table);
    for (const auto family : {Family::inet, Family::arp, Family::netdev})
        if (family == Family::inet || parts_.frames) hold(transaction, family);
    SidecarRuleset(options_, secret_).write(transaction, parts_);
    return transaction.commit(socket_);
}

Status remove_sidecar_table(const std::string& table) {
    return remove_tables(table, {Family::inet, Family::arp, Family::netdev});
}

Status SidecarTable::put_in_force(SharedRules rules) {
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

Result<ConnectionCut> SidecarTable::set_policy(PolicyRules rules,
                                               const StillAllowed& still_allowed) {
    const auto changed =
        change_policy({}, std::move(rules), still_allowed,
                      [this](SharedRules shared) { return put_in_force(std::move(shared)); });
    if (!changed) return changed.error();
    return cut();
}

Status SidecarTable::learn(const std::string& name, const std::vector<IpAddress>& addresses,
                           const std::vector<Scope>& scopes, std::chrono::seconds lifetime) {
    return PolicyTable::learn({}, *rules_, name, addresses, scopes, lifetime);
}

Result<ConnectionCut> SidecarTable::revoke(const StillAllowed& still_allowed) {
    if (auto revoked = PolicyTable::revoke({}, still_allowed); !revoked) return revoked.error();
    return cut();
}

ConnectionCut SidecarTable::cut() const {
    return PolicyTable::cut({}, SidecarRuleset::kJudgedMark, rules_);
}

Judgement SidecarTable::judge(const IpAddress& destination, std::uint8_t protocol,
                              std::uint16_t port) const {
    return PolicyTable::judge({}, *rules_, destination, protocol, port);
}

Result<std::uint64_t> SidecarTable::raw_frames() {
    if (!parts_.frames) return std::uint64_t{0};
    return packets(Family::netdev, SidecarRuleset::kFramesCounter);
}

}  // namespace opensandbox::egress::rules
