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

constexpr const char* connections_set = "connections";
constexpr const char* log_limits_set = "log_limits";

/// Before connection tracking (-200), so that forged packets leave no entry.
constexpr std::int32_t host_before_tracking = -310;
/// Just before destination translation of others (-100): the first to translate wins.
constexpr std::int32_t host_before_translation = -101;
/// Just before the usual filters (0), so that refusals are ours to word.
constexpr std::int32_t before_filters = -5;
/// More keys than a host has links at once.
constexpr std::uint32_t most_links = 65536;

// Of ICMPv6 (RFC 4861).
constexpr std::uint8_t first_of_discovery = 133;
constexpr std::uint8_t last_of_discovery = 137;
constexpr std::uint8_t multicast_report = 143;

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
    RuleWriter writer(transaction, options_.table, learned_sets);
    write_sets(writer);
    transaction.add_counter(Family::inet, options_.table, spoofed_counter);
    writer.chain(version_chain);
    writer.write_refusals(options_.log, log_limits_set);

    writer.fresh_chain(allowed_chain);
    writer.rule(allowed_chain,
                Rule()
                    .more_connections(Source::incoming_link, connections_set, options_.connections)
                    .go_to(RuleWriter::refusal(Reason::connections)));
    writer.rule(allowed_chain, Rule().accept());

    writer.base_chain("prerouting", "filter", Hook::prerouting, host_before_tracking);
    write_prerouting(writer);
    writer.base_chain("translation", "nat", Hook::prerouting, host_before_translation);
    write_translation(writer);
    writer.base_chain("input", "filter", Hook::input, before_filters);
    write_input(writer);
    writer.base_chain("forward", "filter", Hook::forward, before_filters);
    write_forward(writer);
    write_arp(transaction);
}

void HostRuleset::write_sets(RuleWriter& writer) const {
    writer.set(links, link_layout());
    writer.set(quarantined, link_layout());
    for (const bool v6 : {false, true})
        writer.set(sources(v6), source_layout(v6));
    writer.set(policies, verdict_layout());
    writer.set(diversions, verdict_layout());
    writer.write_learned_sets();
    auto counted = link_layout();
    counted.dynamic = true;
    counted.size = most_links;
    writer.set(connections_set, counted);
    counted.timeouts = true;
    counted.lifetime = std::chrono::minutes(1);
    writer.set(log_limits_set, counted);
}

void HostRuleset::write_prerouting(RuleWriter& writer) const {
    const char* chain = "prerouting";
    const KeyPart link(Source::incoming_link);
    writer.rule(chain, Rule().in_set(link, links, false).accept());
    const std::array<KeyPart, 2> key4{link, Source::ipv4_source};
    writer.rule(chain, Rule().is_ipv4().in_set(key4, sources(false)).accept());
    for (std::uint8_t type = first_of_discovery; type <= last_of_discovery; ++type)
        writer.rule(chain, Rule().is_ipv6().transport(IPPROTO_ICMPV6).icmp_type(type).drop());
    writer.rule(chain,
                Rule().is_ipv6().transport(IPPROTO_ICMPV6).icmp_type(multicast_report).drop());
    const std::array<KeyPart, 2> key6{link, Source::ipv6_source};
    writer.rule(chain, Rule().is_ipv6().in_set(key6, sources(true)).accept());
    writer.rule(chain, Rule().count(spoofed_counter));
    const auto& log = options_.log;
    if (log.group != 0)
        writer.rule(chain, Rule()
                               .not_more_often(link, log_limits_set, log.per_second, log.burst)
                               .log_to_group(log.group, spoofed_prefix, log.bytes));
    writer.rule(chain, Rule().drop());
}

void HostRuleset::write_translation(RuleWriter& writer) const {
    const char* chain = "translation";
    writer.rule(chain, Rule().in_set(Source::incoming_link, links, false).accept());
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
    for (const auto transport : with_ports)
        translate(chain, transport, dns_port, options_.dns_port);
    writer.rule(chain, Rule().transport(IPPROTO_TCP).verdict_of(Source::incoming_link, diversions));

    writer.fresh_chain(leave_chain);
    writer.rule(leave_chain, Rule().accept());
    writer.fresh_chain(divert_chain);
    translate(divert_chain, IPPROTO_TCP, 0, options_.interceptor_port);
}

void HostRuleset::write_input(RuleWriter& writer) const {
    const char* chain = "input";
    const KeyPart link(Source::incoming_link);
    writer.rule(chain, Rule().in_set(link, links, false).accept());
    writer.rule(chain, Rule()
                           .in_set(link, quarantined)
                           .connection(net::nft::established | net::nft::related)
                           .is_reply()
                           .accept());
    writer.rule(chain,
                Rule().in_set(link, quarantined).go_to(RuleWriter::refusal(Reason::quarantine)));
    writer.rule(chain, Rule().connection(net::nft::established | net::nft::related).accept());
    writer.rule(chain, Rule().connection(net::nft::invalid).drop());
    const auto accept_port = [&](std::uint8_t transport, std::uint16_t port) {
        if (port == 0) return;
        writer.rule(
            chain,
            Rule().transport(transport).destination_port(port).destination_translated().go_to(
                allowed_chain));
    };
    for (const auto transport : with_ports)
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
                           .in_set(Source::outgoing_link, links)
                           .drop());
    writer.rule(chain, Rule().in_set(link, links, false).accept());
    writer.rule(chain,
                Rule().in_set(link, quarantined).go_to(RuleWriter::refusal(Reason::quarantine)));
    writer.rule(chain, Rule().connection(net::nft::established | net::nft::related).accept());
    writer.rule(chain,
                Rule().connection(net::nft::invalid).transport(IPPROTO_TCP).reject_with_reset());
    writer.rule(chain, Rule().connection(net::nft::invalid).drop());
    writer.refuse_other_protocols(chain);
    writer.rule(chain, Rule().verdict_of(link, policies));
    writer.rule(chain, Rule().go_to(RuleWriter::refusal(Reason::policy)));
}

void HostRuleset::write_arp(net::nft::Transaction& transaction) const {
    transaction.add_set(Family::arp, options_.table, links, link_layout());
    transaction.add_base_chain(Family::arp, options_.table, "input", "filter", Hook::arp_input, 0);
    transaction.flush_chain(Family::arp, options_.table, "input");
    transaction.add_rule(Family::arp, options_.table, "input",
                         Rule().in_set(Source::incoming_link, links).drop());
}

}  // namespace opensandbox::egress::rules
