#include "egress/rules/sidecar_ruleset.hpp"

#include "egress/rules/ports.hpp"

#include <netinet/in.h>

#include <array>

namespace opensandbox::egress::rules {

namespace {

using namespace std::string_view_literals;
using net::nft::Family;
using net::nft::Hook;
using net::nft::Rule;
using net::nft::Transaction;

constexpr auto kLoopback = "lo\0"sv;
constexpr const char* kPoliciesChain = "policies";
constexpr const char* kDiversionsChain = "diversions";

/// Before connection tracking, at -200.
constexpr std::int32_t kBeforeTracking = -300;
/// Before Docker's own translation of its resolver's address, at -100.
constexpr std::int32_t kBeforeTranslation = -101;
constexpr std::int32_t kFilters = 0;
/// After all others.
constexpr std::int32_t kAtLast = 300;

/// To one address.
Rule& to(Rule& rule, const IpAddress& address) {
    if (address.is_v6()) return rule.is_ipv6().destination(address.to_v6(), 128);
    return rule.is_ipv4().destination(address.to_v4(), 32);
}

}  // namespace

Rule SidecarRuleset::own() const {
    Rule rule;
    rule.marked(options_.own.mark);
    if (const auto& group = options_.own.group) rule.made_in_cgroup(group->id, group->level);
    return rule;
}

void SidecarRuleset::write(Transaction& transaction, KernelParts parts) const {
    RuleWriter writer(transaction, options_.table, kLearnedSets);
    writer.write_learned_sets();
    writer.write_refusals(options_.log, {});
    writer.fresh_chain(kAllowedChain);
    writer.rule(kAllowedChain, Rule().mark_connection(kJudgedMark).accept());
    writer.base_chain("zones", "filter", Hook::output, kBeforeTracking);
    if (parts.zones) writer.rule("zones", Rule().marked(options_.own.mark).track_in_zone(kOwnZone));
    writer.base_chain("translation", "nat", Hook::output, kBeforeTranslation);
    write_translation(writer);
    writer.base_chain("egress", "filter", Hook::output, kFilters);
    write_output(writer);
    writer.base_chain("input", "filter", Hook::input, kFilters);
    write_input(writer);
    writer.base_chain("sign", "filter", Hook::postrouting, kAtLast);
    if (!parts.frames) return;
    writer.rule("sign", Rule().not_to_interfaces(kLoopback).set_mark(secret_));
    write_frames(transaction);
}

void SidecarRuleset::write_policy(Transaction& transaction, const std::string& filter,
                                  const std::string& diversion) const {
    RuleWriter writer(transaction, options_.table, kLearnedSets);
    writer.fresh_chain(kPoliciesChain);
    writer.rule(kPoliciesChain, Rule().jump(filter));
    writer.fresh_chain(kDiversionsChain);
    if (!diversion.empty()) writer.rule(kDiversionsChain, Rule().jump(diversion));
}

void SidecarRuleset::accept_exempt(RuleWriter& writer, const char* chain) const {
    for (const auto transport : kWithPorts) {
        for (const auto& server : options_.exempt_nameservers) {
            Rule rule;
            to(rule, server).transport(transport).destination_port(kDnsPort).accept();
            writer.rule(chain, rule);
        }
    }
}

void SidecarRuleset::write_translation(RuleWriter& writer) const {
    writer.chain(kDiversionsChain);
    writer.fresh_chain(kLeaveChain);
    writer.rule(kLeaveChain, Rule().accept());
    writer.fresh_chain(kDivertChain);
    writer.rule(kDivertChain, Rule().transport(IPPROTO_TCP).redirect(options_.interceptor_port));

    const char* chain = "translation";
    writer.rule(chain, own().accept());
    accept_exempt(writer, chain);
    for (const auto transport : kWithPorts)
        writer.rule(chain, Rule().transport(transport).destination_port(kDnsPort).redirect(
                               options_.dns_port));
    writer.rule(chain, Rule().transport(IPPROTO_TCP).jump(kDiversionsChain));
}

void SidecarRuleset::write_output(RuleWriter& writer) const {
    writer.chain(kPoliciesChain);
    const char* chain = "egress";
    write_own(writer, chain);
    // Sockets may have any source, of IPv6 even without a right to. None at all is the kernel's own
    // while it looks whether an address is free; what stays here may be a refusal's answer, which
    // comes as if from where it was refused to go.
    writer.rule(chain, Rule().not_to_interfaces(kLoopback).is_ipv4().source_not_local().go_to(
                           RuleWriter::refusal(Reason::source)));
    writer.rule(chain, Rule()
                           .not_to_interfaces(kLoopback)
                           .is_ipv6()
                           .source(net::Ipv6Address(), 128, false)
                           .source_not_local()
                           .go_to(RuleWriter::refusal(Reason::source)));
    writer.rule(chain, Rule().connection(net::nft::established | net::nft::related).accept());
    // The kernel's answer when a server goes on with a connection that the sidecar has closed.
    const char* untracked = "untracked";
    writer.fresh_chain(untracked);
    writer.rule(untracked, Rule().of_a_process().transport(IPPROTO_TCP).reject_with_reset());
    writer.rule(untracked, Rule().transport(IPPROTO_TCP).resets_stream().accept());
    writer.rule(untracked, Rule().transport(IPPROTO_TCP).reject_with_reset());
    writer.rule(chain,
                Rule().connection(net::nft::invalid).transport(IPPROTO_TCP).go_to(untracked));
    writer.rule(chain, Rule().connection(net::nft::invalid).drop());
    writer.rule(chain, Rule()
                           .connection(net::nft::fresh)
                           .more_connections(options_.connections)
                           .go_to(RuleWriter::refusal(Reason::connections)));
    writer.rule(chain, Rule()
                           .is_ipv4()
                           .destination(net::Ipv4Address({127, 0, 0, 11}), 32)
                           .go_to(RuleWriter::refusal(Reason::host)));
    writer.rule(chain, Rule().to_interfaces(kLoopback).accept());
    // What was redirected here is still on its way to the link it was first meant for.
    for (const char* here : {"127.0.0.1", "::1"}) {
        Rule rule;
        to(rule, boost::asio::ip::make_address(here))
            .destination_translated()
            .mark_connection(kJudgedMark)
            .accept();
        writer.rule(chain, rule);
    }
    accept_exempt(writer, chain);
    writer.rule(chain, Rule().is_ipv4().transport(IPPROTO_IGMP).drop());
    writer.refuse_other_protocols(chain);
    // Neighbours and routers are looked for by the kernel itself.
    const char* kernel = "discovery";
    writer.fresh_chain(kernel);
    writer.rule(kernel, Rule().of_a_process().jump(kPoliciesChain));
    writer.rule(kernel, Rule().of_a_process().go_to(RuleWriter::refusal(Reason::policy)));
    writer.rule(kernel, Rule().accept());
    writer.rule(chain, Rule().is_ipv6().transport(IPPROTO_ICMPV6).go_to(kernel));
    writer.rule(chain, Rule().jump(kPoliciesChain));
    writer.rule(chain, Rule().go_to(RuleWriter::refusal(Reason::policy)));
}

/// Both sides use the same addresses. What connection tracking still knows of one side's connection
/// must not take in a new one of the other's, from the same port to the same place: it would be
/// past all that is judged at the beginning, or be translated as that was. The sidecar's have a
/// zone of their own; this is for kernels without any, and for what began before there was one.
void SidecarRuleset::write_own(RuleWriter& writer, const char* chain) const {
    // One that went to the interceptor: the sidecar's next try has another port.
    writer.rule(chain, own()
                           .transport(IPPROTO_TCP)
                           .destination_port(options_.interceptor_port)
                           .destination_translated()
                           .reject_with_reset());
    writer.rule(chain, own().mark_connection(kOwnMark).accept());
    const char* stale = "of_sidecar";
    writer.fresh_chain(stale);
    // The kernel's own, when a socket is closed already.
    writer.rule(stale, Rule().transport(IPPROTO_TCP).in_midst_of_stream().accept());
    writer.rule(stale, Rule().transport(IPPROTO_TCP).reject_with_reset());
    writer.rule(stale, Rule().transport(IPPROTO_UDP).go_to(RuleWriter::refusal(Reason::policy)));
    // Servers within the namespace answer the sidecar over the loopback link.
    writer.rule(chain, Rule().not_to_interfaces(kLoopback).of_connection(kOwnMark).jump(stale));
}

void SidecarRuleset::write_input(RuleWriter& writer) const {
    const char* chain = "input";
    writer.rule(chain, Rule().from_interfaces(kLoopback).accept());
    writer.rule(chain, Rule().connection(net::nft::established | net::nft::related).accept());
    // A connection that was cut must not come to life again from its other end.
    writer.rule(chain, Rule().transport(IPPROTO_TCP).in_midst_of_stream().drop());
    if (!options_.accept_datagrams) writer.rule(chain, Rule().transport(IPPROTO_UDP).drop());
}

void SidecarRuleset::write_frames(Transaction& transaction) const {
    transaction.add_base_chain(Family::arp, options_.table, "sign", "filter", Hook::arp_output, 0);
    transaction.flush_chain(Family::arp, options_.table, "sign");
    transaction.add_rule(Family::arp, options_.table, "sign", Rule().set_mark(secret_));
    transaction.add_counter(Family::netdev, options_.table, kFramesCounter);
    for (std::size_t i = 0; i < options_.links.size(); ++i) {
        const auto chain = "frames_" + std::to_string(i);
        transaction.add_egress_chain(options_.table, chain, options_.links[i], 0);
        transaction.add_rule(Family::netdev, options_.table, chain,
                             Rule().marked(secret_).clear_mark().accept());
        transaction.add_rule(Family::netdev, options_.table, chain,
                             Rule().count(kFramesCounter).drop());
    }
}

}  // namespace opensandbox::egress::rules
