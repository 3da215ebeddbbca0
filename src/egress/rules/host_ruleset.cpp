#include "egress/rules/host_ruleset.hpp"

#include "egress/rules/ports.hpp"

#include <netinet/in.h>

#include <array>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Family;
using net::nft::Hook;
using net::nft::KeyField;
using net::nft::KeyPart;
using net::nft::Rule;
using net::nft::SetLayout;
using Source = net::nft::KeyPart::Source;

constexpr const char* kConnectionsSet = "connections";
constexpr const char* kLogLimitsSet = "log_limits";

/// Before connection tracking (-200), so that forged packets leave no entry.
constexpr std::int32_t kHostBeforeTracking = -310;
/// Just before destination translation of others (-100): the first to translate wins.
constexpr std::int32_t kHostBeforeTranslation = -101;
/// Just before the usual filters (0), so that refusals are ours to word.
constexpr std::int32_t kBeforeFilters = -5;
/// More keys than a host has links at once.
constexpr std::uint32_t kMostLinks = 65536;

// Of ICMPv6 (RFC 4861).
constexpr std::uint8_t kFirstOfDiscovery = 133;
constexpr std::uint8_t kLastOfDiscovery = 137;
constexpr std::uint8_t kMulticastReport = 143;

}  // namespace

SetLayout HostRuleset::link_layout() {
    return SetLayout({KeyField::link_name});
}

SetLayout HostRuleset::source_layout(bool v6) {
    return SetLayout({KeyField::link_name, v6 ? KeyField::ipv6 : KeyField::ipv4});
}

SetLayout HostRuleset::verdict_layout() {
    return SetLayout({KeyField::link_name}, net::nft::SetValue::verdict);
}

void HostRuleset::write(net::nft::Transaction& transaction) const {
    RuleWriter writer(transaction, options_.table, kLearnedSets);
    write_sets(writer);
    transaction.add_counter(Family::inet, options_.table, kSpoofedCounter);
    writer.chain(kVersionChain);
    writer.write_refusals(options_.log, kLogLimitsSet);

    writer.fresh_chain(kAllowedChain);
    writer.rule(kAllowedChain,
                Rule()
                    .more_connections(Source::incoming_link, kConnectionsSet, options_.connections)
                    .go_to(RuleWriter::refusal(Reason::connections)));
    writer.rule(kAllowedChain, Rule().accept());

    writer.base_chain("prerouting", "filter", Hook::prerouting, kHostBeforeTracking);
    write_prerouting(writer);
    writer.base_chain("translation", "nat", Hook::prerouting, kHostBeforeTranslation);
    write_translation(writer);
    writer.base_chain("input", "filter", Hook::input, kBeforeFilters);
    write_input(writer);
    writer.base_chain("forward", "filter", Hook::forward, kBeforeFilters);
    write_forward(writer);
    write_arp(transaction);
}

void HostRuleset::write_sets(RuleWriter& writer) const {
    writer.set(kLinks, link_layout());
    writer.set(kQuarantined, link_layout());
    for (const bool v6 : {false, true})
        writer.set(sources(v6), source_layout(v6));
    writer.set(kPolicies, verdict_layout());
    writer.set(kDiversions, verdict_layout());
    writer.write_learned_sets();
    auto counted = link_layout();
    counted.dynamic = true;
    counted.size = kMostLinks;
    writer.set(kConnectionsSet, counted);
    counted.timeouts = true;
    counted.lifetime = std::chrono::minutes(1);
    writer.set(kLogLimitsSet, counted);
}

void HostRuleset::write_prerouting(RuleWriter& writer) const {
    const char* chain = "prerouting";
    const KeyPart link(Source::incoming_link);
    writer.rule(chain, Rule().in_set(link, kLinks, false).accept());
    const std::array<KeyPart, 2> key4{link, Source::ipv4_source};
    writer.rule(chain, Rule().is_ipv4().in_set(key4, sources(false)).accept());
    for (std::uint8_t type = kFirstOfDiscovery; type <= kLastOfDiscovery; ++type)
        writer.rule(chain, Rule().is_ipv6().transport(IPPROTO_ICMPV6).icmp_type(type).drop());
    writer.rule(chain,
                Rule().is_ipv6().transport(IPPROTO_ICMPV6).icmp_type(kMulticastReport).drop());
    const std::array<KeyPart, 2> key6{link, Source::ipv6_source};
    writer.rule(chain, Rule().is_ipv6().in_set(key6, sources(true)).accept());
    writer.rule(chain, Rule().count(kSpoofedCounter));
    const auto& log = options_.log;
    if (log.group != 0)
        writer.rule(chain, Rule()
                               .not_more_often(link, kLogLimitsSet, log.per_second, log.burst)
                               .log_to_group(log.group, kSpoofedPrefix, log.bytes));
    writer.rule(chain, Rule().drop());
}

void HostRuleset::write_translation(RuleWriter& writer) const {
    const char* chain = "translation";
    writer.rule(chain, Rule().in_set(Source::incoming_link, kLinks, false).accept());
    // From a port, or all (0), to one of this host's own; none (0) where nobody listens.
    const auto translate = [&](const char* where, std::uint8_t transport, std::uint16_t from,
                               std::uint16_t to) {
        const auto write = [&](Rule& rule, const auto& gateway) {
            if (!gateway || to == 0) return;
            rule.transport(transport);
            if (from != 0) rule.destination_port(from);
            writer.rule(where, rule.translate_destination(*gateway, to));
        };
        Rule v4;
        Rule v6;
        write(v4.is_ipv4(), options_.gateway4);
        write(v6.is_ipv6(), options_.gateway6);
    };
    for (const auto transport : kWithPorts)
        translate(chain, transport, kDnsPort, options_.dns_port);
    writer.rule(chain,
                Rule().transport(IPPROTO_TCP).verdict_of(Source::incoming_link, kDiversions));

    writer.fresh_chain(kLeaveChain);
    writer.rule(kLeaveChain, Rule().accept());
    writer.fresh_chain(kDivertChain);
    translate(kDivertChain, IPPROTO_TCP, 0, options_.interceptor_port);
}

void HostRuleset::write_input(RuleWriter& writer) const {
    const char* chain = "input";
    const KeyPart link(Source::incoming_link);
    writer.rule(chain, Rule().in_set(link, kLinks, false).accept());
    writer.rule(chain, Rule()
                           .in_set(link, kQuarantined)
                           .connection(net::nft::established | net::nft::related)
                           .is_reply()
                           .accept());
    writer.rule(chain,
                Rule().in_set(link, kQuarantined).go_to(RuleWriter::refusal(Reason::quarantine)));
    writer.rule(chain, Rule().connection(net::nft::established | net::nft::related).accept());
    writer.rule(chain, Rule().connection(net::nft::invalid).drop());
    const auto accept_port = [&](std::uint8_t transport, std::uint16_t port) {
        if (port == 0) return;
        writer.rule(
            chain,
            Rule().transport(transport).destination_port(port).destination_translated().go_to(
                kAllowedChain));
    };
    for (const auto transport : kWithPorts)
        accept_port(transport, options_.dns_port);
    accept_port(IPPROTO_TCP, options_.interceptor_port);
    writer.rule(chain, Rule().go_to(RuleWriter::refusal(Reason::host)));
}

void HostRuleset::write_forward(RuleWriter& writer) const {
    const char* chain = "forward";
    const KeyPart link(Source::incoming_link);
    // A connection that was cut must not come to life again from its other end.
    writer.rule(chain, Rule()
                           .connection(net::nft::fresh)
                           .transport(IPPROTO_TCP)
                           .in_midst_of_stream()
                           .in_set(Source::outgoing_link, kLinks)
                           .drop());
    writer.rule(chain, Rule().in_set(link, kLinks, false).accept());
    writer.rule(chain,
                Rule().in_set(link, kQuarantined).go_to(RuleWriter::refusal(Reason::quarantine)));
    writer.rule(chain, Rule().connection(net::nft::established | net::nft::related).accept());
    writer.rule(chain,
                Rule().connection(net::nft::invalid).transport(IPPROTO_TCP).reject_with_reset());
    writer.rule(chain, Rule().connection(net::nft::invalid).drop());
    writer.refuse_other_protocols(chain);
    writer.rule(chain, Rule().verdict_of(link, kPolicies));
    writer.rule(chain, Rule().go_to(RuleWriter::refusal(Reason::policy)));
}

void HostRuleset::write_arp(net::nft::Transaction& transaction) const {
    transaction.add_set(Family::arp, options_.table, kLinks, link_layout());
    transaction.add_base_chain(Family::arp, options_.table, "input", "filter", Hook::arp_input, 0);
    transaction.flush_chain(Family::arp, options_.table, "input");
    transaction.add_rule(Family::arp, options_.table, "input",
                         Rule().in_set(Source::incoming_link, kLinks).drop());
}

}  // namespace opensandbox::egress::rules
