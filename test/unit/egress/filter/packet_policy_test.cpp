#include "egress/filter/packet_policy.hpp"

#include "egress/filter/resolved_names.hpp"
#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>
#include <netinet/in.h>

using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

rules::Judgement judged(const rules::PolicyRules& rules, std::string_view to, std::uint16_t port) {
    return rules::judge(rules, address(to), IPPROTO_TCP, port,
                        [](const rules::Scope&) { return false; });
}

constexpr auto kAllowed = rules::Judgement::allowed;
constexpr auto kRefused = rules::Judgement::refused;

}  // namespace

TEST_CASE("the packet filter gets the rules for addresses", "[egress]") {
    const EffectivePolicy policy(
        {}, test::policy({"allow 203.0.113.0/24:443", "deny 203.0.113.9", "allow 10.0.0.0/8",
                          "allow 0.0.0.0/0:80", "allow a.test"}));
    const auto rules = packet_rules(policy, {});
    CHECK(judged(rules, "203.0.113.1", 443) == kAllowed);
    CHECK(judged(rules, "203.0.113.1", 22) == kRefused);
    CHECK(judged(rules, "203.0.113.9", 443) == kRefused);
    CHECK(judged(rules, "10.1.1.1", 22) == kAllowed);
    CHECK(judged(rules, "93.184.216.34", 80) == kAllowed);
    CHECK(judged(rules, "169.254.169.254", 80) == kRefused);
}

TEST_CASE("rules with ports speak of TCP, of both families, and not of what lies inside") {
    const EffectivePolicy policy({}, written(R"({"egress":[{"action":"allow","ports":[443,80]},
        {"action":"deny","target":"203.0.113.0/24","ports":[443]},
        {"action":"allow","target":"10.0.0.0/8","ports":[5432]},
        {"action":"allow","target":"192.0.2.1"},{"action":"deny","ports":[22]}]})"));
    const auto rules = packet_rules(policy, {});
    for (const char* outside : {"93.184.216.34", "2606:4700::1111"}) {
        CHECK(judged(rules, outside, 443) == kAllowed);
        CHECK(judged(rules, outside, 80) == kAllowed);
        CHECK(judged(rules, outside, 81) == kRefused);
        CHECK(rules::judge(rules, address(outside), IPPROTO_UDP, 443,
                           [](const rules::Scope&) { return false; }) == kRefused);
    }
    for (const char* inside : {"169.254.169.254", "10.1.1.1", "127.0.0.1", "fd00::1"})
        CHECK(judged(rules, inside, 443) == kRefused);
    CHECK(judged(rules, "10.1.1.1", 5432) == kAllowed);
    // What denies wins, whatever it is limited to and wherever it stands.
    CHECK(judged(rules, "203.0.113.5", 443) == kRefused);
    CHECK(judged(rules, "203.0.113.5", 80) == kAllowed);
    CHECK(judged(rules, "192.0.2.1", 22) == kRefused);
    CHECK(judged(rules, "192.0.2.1", 23) == kAllowed);
    const auto learned = [](const rules::Scope&) { return true; };
    CHECK(rules::judge(rules, address("93.184.216.34"), IPPROTO_TCP, 22, learned) == kRefused);
    CHECK(rules::judge(rules, address("93.184.216.34"), IPPROTO_TCP, 23, learned) == kAllowed);
}

TEST_CASE("a rule is told by its place in the policy, however many ports it has") {
    const EffectivePolicy policy({}, written(R"({"egress":[{"action":"allow","ports":[80,90]},
        {"action":"deny","target":"192.0.2.1"}]})"));
    CHECK(policy.rules().size() == 5);
    const Verdict denied = policy.judge_address(address("192.0.2.1"), Transport::tcp, 80);
    CHECK(to_string(denied.reason, denied.allowed) == "policy rule 1: deny 192.0.2.1");
    const Verdict allowed = policy.judge_address(address("192.0.2.2"), Transport::tcp, 90);
    CHECK(to_string(allowed.reason, allowed.allowed) == "policy rule 0: allow 0.0.0.0/0:90/tcp");
    CHECK_FALSE(policy.judge_address(address("192.0.2.2"), Transport::udp, 90).allowed);
}

TEST_CASE("without packet filtering addresses are not judged", "[egress]") {
    const EffectivePolicy policy({}, test::policy({"deny 93.184.216.34"}));
    PacketPolicySettings settings;
    settings.filtering = false;
    CHECK(judged(packet_rules(policy, settings), "93.184.216.34", 80) == kAllowed);
}

TEST_CASE("what names were granted is made of the scopes that the filter learns in", "[egress]") {
    const bool by_ports = GENERATE(false, true);
    const EffectivePolicy policy(
        {}, by_ports ? test::policy({"deny b.test:25", "allow b.test", "allow a.test:443",
                                     "allow a.test:8000-8100/tcp", "allow c.test"})
                     : test::policy({"allow a.test", "allow b.test", "allow c.test"}));
    const auto rules = packet_rules(policy, {});
    for (const char* name : {"a.test", "b.test", "c.test"}) {
        const PortSet granted = policy.judge_name(name).granted;
        PortSet sum;
        for (const rules::Scope& scope : learned_scopes(policy, granted)) {
            INFO(name << " " << int(scope.protocol) << " " << scope.first << "-" << scope.last);
            CHECK(holds(granted, scope));
            const auto parts = rules::parts_of(scope, rules.learned_scopes);
            REQUIRE(parts.has_value());
            for (const rules::Scope& part : *parts)
                CHECK(holds(granted, part));
        }
    }
    CHECK_FALSE(holds(policy.judge_name("d.test").granted, rules::Scope(IPPROTO_TCP, 443)));
    if (by_ports) {
        CHECK_FALSE(holds(policy.judge_name("b.test").granted, rules::Scope(IPPROTO_TCP, 25)));
        CHECK_FALSE(holds(policy.judge_name("b.test").granted, rules::Scope()));
        CHECK(holds(policy.judge_name("c.test").granted, rules::Scope()));
    }
}

TEST_CASE("resolved names lead to their addresses for a time", "[egress]") {
    using namespace std::chrono_literals;
    ResolvedNames names(2);
    const ResolvedNames::Time now{};
    names.note("a.test", address("192.0.2.1"), now + 10s, now);
    names.note("a.test", address("192.0.2.1"), now + 5s, now);
    CHECK(names.leads_to("a.test", address("192.0.2.1"), now + 9s));
    CHECK_FALSE(names.leads_to("a.test", address("192.0.2.1"), now + 10s));
    CHECK_FALSE(names.leads_to("a.test", address("192.0.2.2"), now));
    CHECK_FALSE(names.leads_to("b.test", address("192.0.2.1"), now));
    names.note("b.test", address("192.0.2.1"), now + 20s, now);
    names.note("c.test", address("192.0.2.1"), now + 20s, now + 15s);
    CHECK(names.size() == 2);
    CHECK(names.leads_to("b.test", address("192.0.2.1"), now + 15s));
}
