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

LearnedSets HostRuleset::learned_sets() {
    LearnedSets sets;
    sets.v4 = "learned4";
    sets.v6 = "learned6";
    sets.by_link = true;
    return sets;
}

void HostRuleset::base_chain(net::nft::Transaction& transaction, const char* name, const char* type,
                             Hook hook, std::int32_t priority) const {
    transaction.add_base_chain(Family::inet, options_.table, name, type, hook, priority);
    transaction.flush_chain(Family::inet, options_.table, name);
}

void HostRuleset::write(net::nft::Transaction& transaction) const {
    write_sets(transaction);
    transaction.add_counter(Family::inet, options_.table, spoofed_counter);
    RuleWriter writer(transaction, options_.table, learned_sets());
    writer.chain(version_chain);
    writer.write_refusals(options_.log, log_limits_set);

    writer.fresh_chain(allowed_chain);
    writer.rule(allowed_chain,
                Rule()
                    .more_connections(Source::incoming_link, connections_set, options_.connections)
                    .go_to(RuleWriter::refusal(Reason::connections)));
    writer.rule(allowed_chain, Rule().accept());

    base_chain(transaction, "prerouting", "filter", Hook::prerouting, host_before_tracking);
    write_prerouting(writer);
    base_chain(transaction, "translation", "nat", Hook::prerouting, host_before_translation);
    write_translation(writer);
    base_chain(transaction, "input", "filter", Hook::input, before_filters);
    write_input(writer);
    base_chain(transaction, "forward", "filter", Hook::forward, before_filters);
    write_forward(writer);
    write_arp(transaction);
}

void HostRuleset::write_sets(net::nft::Transaction& transaction) const {
    const auto add = [&](const char* name, const SetLayout& layout) {
        transaction.add_set(Family::inet, options_.table, name, layout);
    };
    add(links, link_layout());
    add(quarantined, link_layout());
    add(sources4, source_layout(false));
    add(sources6, source_layout(true));
    add(policies, verdict_layout());
    add(diversions, verdict_layout());
    for (const bool v6 : {false, true}) {
        const auto learned = learned_sets();
        add((v6 ? learned.v6 : learned.v4).c_str(), learned.layout(v6));
    }
    auto counted = link_layout();
    counted.dynamic = true;
    counted.size = most_links;
    add(connections_set, counted);
    counted.timeouts = true;
    counted.lifetime = std::chrono::minutes(1);
    add(log_limits_set, counted);
}

void HostRuleset::write_prerouting(RuleWriter& writer) const {
    const char* chain = "prerouting";
    const KeyPart link(Source::incoming_link);
    writer.rule(chain, Rule().in_set(link, links, false).accept());
    const std::array<KeyPart, 2> key4{link, Source::ipv4_source};
    writer.rule(chain, Rule().is_ipv4().in_set(key4, sources4).accept());
    for (std::uint8_t type = first_of_discovery; type <= last_of_discovery; ++type)
        writer.rule(chain, Rule().is_ipv6().transport(IPPROTO_ICMPV6).icmp_type(type).drop());
    writer.rule(chain,
                Rule().is_ipv6().transport(IPPROTO_ICMPV6).icmp_type(multicast_report).drop());
    const std::array<KeyPart, 2> key6{link, Source::ipv6_source};
    writer.rule(chain, Rule().is_ipv6().in_set(key6, sources6).accept());
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
    for (const auto transport : with_ports) {
        if (options_.dns_port == 0) break;
        if (options_.gateway4)
            writer.rule(chain, Rule()
                                   .is_ipv4()
                                   .transport(transport)
                                   .destination_port(dns_port)
                                   .translate_destination(*options_.gateway4, options_.dns_port));
        if (options_.gateway6)
            writer.rule(chain, Rule()
                                   .is_ipv6()
                                   .transport(transport)
                                   .destination_port(dns_port)
                                   .translate_destination(*options_.gateway6, options_.dns_port));
    }
    writer.rule(chain, Rule().transport(IPPROTO_TCP).verdict_of(Source::incoming_link, diversions));

    writer.fresh_chain(leave_chain);
    writer.rule(leave_chain, Rule().accept());
    writer.fresh_chain(divert_chain);
    if (options_.interceptor_port == 0) return;
    if (options_.gateway4)
        writer.rule(divert_chain,
                    Rule()
                        .is_ipv4()
                        .transport(IPPROTO_TCP)
                        .translate_destination(*options_.gateway4, options_.interceptor_port));
    if (options_.gateway6)
        writer.rule(divert_chain,
                    Rule()
                        .is_ipv6()
                        .transport(IPPROTO_TCP)
                        .translate_destination(*options_.gateway6, options_.interceptor_port));
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
    writer.rule(chain, Rule()
                           .not_transport(IPPROTO_TCP)
                           .not_transport(IPPROTO_UDP)
                           .not_transport(IPPROTO_ICMP)
                           .not_transport(IPPROTO_ICMPV6)
                           .go_to(RuleWriter::refusal(Reason::protocol)));
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
