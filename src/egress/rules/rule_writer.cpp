#include "egress/rules/rule_writer.hpp"

#include "egress/rules/ports.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <map>

namespace opensandbox::egress::rules {

namespace {

using net::nft::Element;
using net::nft::Family;
using net::nft::KeyField;
using net::nft::KeyPart;
using net::nft::Rule;
using net::nft::SetKey;
using net::nft::SetLayout;
using Source = net::nft::KeyPart::Source;

/// Of the protocol and ports that a scope speaks of.
Rule begin_rule(const Scope& scope) {
    Rule rule;
    if (scope.protocol == Scope::kOthers)
        rule.not_transport(IPPROTO_TCP).not_transport(IPPROTO_UDP);
    else if (scope.protocol != 0)
        rule.transport(scope.protocol);
    if (scope.has_ports() && (scope.first != 0 || scope.last != 65535))
        rule.destination_ports(scope.first, scope.last);
    return rule;
}

}  // namespace

std::string_view to_string(Reason reason) {
    switch (reason) {
        case Reason::policy: return "policy";
        case Reason::private_range: return "private";
        case Reason::dns_over_tls: return "dot";
        case Reason::doh: return "doh";
        case Reason::quic: return "quic";
        case Reason::protocol: return "protocol";
        case Reason::host: return "host";
        case Reason::connections: return "connections";
        case Reason::quarantine: return "quarantine";
        case Reason::source: return "source";
    }
    return "policy";
}

const std::vector<Reason>& all_reasons() {
    static const std::vector<Reason> reasons{
        Reason::policy,     Reason::private_range, Reason::dns_over_tls, Reason::doh,
        Reason::quic,       Reason::protocol,      Reason::host,         Reason::connections,
        Reason::quarantine, Reason::source};
    return reasons;
}

SetLayout LearnedSets::layout(bool v6) const {
    SetLayout layout;
    if (by_link) layout.key.push_back(KeyField::link_name);
    layout.key.push_back(v6 ? KeyField::ipv6 : KeyField::ipv4);
    layout.key.push_back(KeyField::protocol);
    layout.key.push_back(KeyField::port);
    layout.key.push_back(KeyField::port);
    layout.timeouts = true;
    return layout;
}

std::string RuleWriter::refusal(Reason reason) {
    return "refuse_" + std::string(to_string(reason));
}

void RuleWriter::rule(std::string_view chain, const Rule& rule) {
    transaction_.add_rule(Family::inet, table_, chain, rule);
}

void RuleWriter::chain(const std::string& chain) {
    transaction_.add_chain(Family::inet, table_, chain);
}

void RuleWriter::set(const std::string& name, const SetLayout& layout) {
    transaction_.add_set(Family::inet, table_, name, layout);
}

void RuleWriter::base_chain(const char* name, const char* type, net::nft::Hook hook,
                            std::int32_t priority) {
    transaction_.add_base_chain(Family::inet, table_, name, type, hook, priority);
    transaction_.flush_chain(Family::inet, table_, name);
}

void RuleWriter::fresh_chain(const std::string& name) {
    chain(name);
    transaction_.flush_chain(Family::inet, table_, name);
}

void RuleWriter::write_learned_sets() {
    for (const bool v6 : {false, true})
        set(LearnedSets::name(v6), learned_.layout(v6));
}

void RuleWriter::refuse_other_protocols(const std::string& chain) {
    rule(chain, Rule()
                    .not_transport(IPPROTO_TCP)
                    .not_transport(IPPROTO_UDP)
                    .not_transport(IPPROTO_ICMP)
                    .not_transport(IPPROTO_ICMPV6)
                    .go_to(refusal(Reason::protocol)));
}

void RuleWriter::write_refusals(const LogLimits& log, const std::string& limits_set) {
    const std::string end = "refuse";
    fresh_chain(end);
    rule(end, Rule().transport(IPPROTO_TCP).reject_with_reset());
    rule(end, Rule().reject_as_prohibited());
    for (const auto reason : all_reasons()) {
        const auto name = refusal(reason);
        fresh_chain(name);
        transaction_.add_counter(Family::inet, table_, name);
        rule(name, Rule().count(name));
        if (log.group != 0) {
            Rule entry;
            if (limits_set.empty())
                entry.not_more_often(log.per_second, log.burst);
            else
                entry.not_more_often(Source::incoming_link, limits_set, log.per_second, log.burst);
            entry.log_to_group(log.group, std::string(kLogPrefix) + std::string(to_string(reason)),
                               log.bytes);
            rule(name, entry);
        }
        // An answer would go to whom the address belongs to.
        if (reason == Reason::source)
            rule(name, Rule().drop());
        else
            rule(name, Rule().go_to(end));
    }
}

void RuleWriter::write_addresses(const std::string& chain, const Scope& scope,
                                 const std::vector<Prefix>& prefixes, const std::string& to) {
    for (const bool v6 : {false, true}) {
        const auto ranges = merged_ranges(prefixes, v6);
        if (ranges.empty()) continue;
        SetLayout layout({v6 ? KeyField::ipv6 : KeyField::ipv4});
        layout.intervals = true;
        std::vector<Element> elements;
        for (const auto& [first, last] : ranges) {
            Element element(SetKey().address(first));
            element.last = SetKey().address(last);
            elements.push_back(std::move(element));
        }
        const auto set = transaction_.add_constant_set(Family::inet, table_, layout, elements);
        auto match = begin_rule(scope);
        v6 ? match.is_ipv6() : match.is_ipv4();
        match.in_set(v6 ? Source::ipv6_destination : Source::ipv4_destination, set);
        rule(chain, match.go_to(to));
    }
}

void RuleWriter::write_prefixes(const std::string& chain, const std::vector<ScopedPrefix>& prefixes,
                                Part part, const std::string& to) {
    std::map<Scope, std::vector<Prefix>> scopes;
    for (const auto& [prefix, scope] : prefixes)
        if (part == Part::all || is_private(prefix) == (part == Part::within_private))
            scopes[scope].push_back(prefix);
    for (const auto& [scope, of_it] : scopes)
        write_addresses(chain, scope, of_it, to);
}

void RuleWriter::write_learned(const std::string& chain, const PolicyRules& rules,
                               const std::string& to, bool tcp_only) {
    for (const auto& scope : rules.learned_scopes) {
        if (tcp_only && scope.protocol != 0 && scope.protocol != IPPROTO_TCP) continue;
        for (const bool v6 : {false, true}) {
            std::vector<KeyPart> key;
            if (learned_.by_link) key.emplace_back(Source::incoming_link);
            key.emplace_back(v6 ? Source::ipv6_destination : Source::ipv4_destination);
            key.emplace_back(Source::constant_protocol, scope.protocol);
            key.emplace_back(Source::constant_port, scope.first);
            key.emplace_back(Source::constant_port, scope.last);
            auto match = begin_rule(scope);
            v6 ? match.is_ipv6() : match.is_ipv4();
            match.in_set(key, LearnedSets::name(v6));
            rule(chain, match.go_to(to));
        }
    }
}

void RuleWriter::write_doh(const std::string& chain, const PolicyRules& rules,
                           const std::string& to, bool tcp_only) {
    if (!rules.block_doh) return;
    for (const auto transport : kWithPorts) {
        if (tcp_only && transport != IPPROTO_TCP) continue;
        const Scope https(transport, kHttpsPort);
        if (rules.doh_servers.empty())
            rule(chain, Rule().transport(transport).destination_port(kHttpsPort).go_to(to));
        else
            write_addresses(chain, https, rules.doh_servers, to);
    }
}

void RuleWriter::write_filter(const std::string& chain, const PolicyRules& rules) {
    const std::string allowed = kAllowedChain;
    const auto refused = refusal(Reason::policy);
    for (const auto transport : kWithPorts)
        rule(chain, Rule()
                        .transport(transport)
                        .destination_port(kDnsOverTlsPort)
                        .go_to(refusal(Reason::dns_over_tls)));
    write_doh(chain, rules, refusal(Reason::doh), false);
    write_prefixes(chain, rules.denied, Part::all, refused);
    write_prefixes(chain, rules.allowed, Part::within_private, allowed);
    if (rules.refuse_private)
        write_addresses(chain, {}, private_ranges(), refusal(Reason::private_range));
    if (std::ranges::find(rules.intercepted_ports, kHttpsPort) != rules.intercepted_ports.end())
        rule(chain, Rule()
                        .transport(IPPROTO_UDP)
                        .destination_port(kHttpsPort)
                        .go_to(refusal(Reason::quic)));
    write_prefixes(chain, rules.allowed, Part::beyond_private, allowed);
    // What the interceptor is to have was sent there before it came here; what comes here all the
    // same (its address was learned in between) must not pass it by.
    for (const auto port : rules.intercepted_ports)
        rule(chain, Rule().transport(IPPROTO_TCP).destination_port(port).go_to(refused));
    write_learned(chain, rules, allowed, false);
    rule(chain, Rule().go_to(rules.allow_by_default ? allowed : refused));
}

void RuleWriter::write_diversion(const std::string& chain, const PolicyRules& rules) {
    if (rules.intercepted_ports.empty()) return;
    SetLayout ports({KeyField::port});
    std::vector<Element> elements;
    for (const auto port : rules.intercepted_ports)
        elements.emplace_back(SetKey().port(port));
    // What is refused, or allowed past the interceptor, goes on as it is: the filter judges it.
    const std::string leave = kLeaveChain;
    const std::string divert = kDivertChain;
    const auto set = transaction_.add_constant_set(Family::inet, table_, ports, elements);
    rule(chain, Rule().not_transport(IPPROTO_TCP).accept());
    rule(chain, Rule().in_set(Source::destination_port, set, false).accept());
    rule(chain, Rule().destination_port(kDnsOverTlsPort).accept());
    write_doh(chain, rules, leave, true);
    write_prefixes(chain, rules.denied, Part::all, leave);
    write_prefixes(chain, rules.allowed, Part::within_private, leave);
    if (rules.refuse_private) write_addresses(chain, {}, private_ranges(), leave);
    write_learned(chain, rules, divert, true);
    write_prefixes(chain, rules.allowed, Part::beyond_private, leave);
    if (rules.allow_by_default) rule(chain, Rule().go_to(divert));
}

}  // namespace opensandbox::egress::rules
