#include "egress/rules/policy_rules.hpp"

#include <catch2/catch.hpp>
#include <netinet/in.h>

using namespace opensandbox;
using namespace opensandbox::egress::rules;

namespace {

IpAddress at(const std::string& text) {
    return boost::asio::ip::make_address(text);
}

Judgement judge_tcp(const PolicyRules& rules, const std::string& to, std::uint16_t port,
                    bool learned = false) {
    return judge(rules, at(to), IPPROTO_TCP, port, [&](const Scope&) { return learned; });
}

}  // namespace

TEST_CASE("a prefix holds the addresses of its family that begin like it") {
    const Prefix prefix(at("10.1.2.3"), 12);
    CHECK(prefix.network == at("10.0.0.0"));
    CHECK(prefix.last() == at("10.15.255.255"));
    CHECK(prefix.contains(at("10.15.1.1")));
    CHECK_FALSE(prefix.contains(at("10.16.0.0")));
    CHECK_FALSE(prefix.contains(at("::ffff:10.1.2.3")));
    const Prefix all(at("::"), 0);
    CHECK(all.contains(at("ff02::1")));
    CHECK(all.last() == at("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    CHECK(Prefix(at("2001:db8:ff::"), 41).last() == at("2001:db8:ff:ffff:ffff:ffff:ffff:ffff"));
}

TEST_CASE("overlapping and adjacent prefixes become ranges apart from each other") {
    const auto ranges = merged_ranges(
        {Prefix(at("10.1.0.0"), 16), Prefix(at("10.0.0.0"), 8), Prefix(at("11.0.0.0"), 8),
         Prefix(at("13.0.0.1")), Prefix(at("255.255.255.255")), Prefix(at("fd00::"), 8)},
        false);
    REQUIRE(ranges.size() == 3);
    CHECK(ranges[0].first == at("10.0.0.0"));
    CHECK(ranges[0].second == at("11.255.255.255"));
    CHECK(ranges[2].second == at("255.255.255.255"));
    const auto v6 = merged_ranges({Prefix(at("fd00::1")), Prefix(at("fd00::2"))}, true);
    REQUIRE(v6.size() == 1);
    CHECK(v6[0].second == at("fd00::2"));
}

TEST_CASE("ports are cut at every border of a rule, and a rule is a union of the parts") {
    const Scope low(IPPROTO_TCP, 1, 100);
    const Scope high(IPPROTO_TCP, 50, 200);
    const auto parts = partition({low, high, Scope(), Scope(IPPROTO_UDP, 53)});
    CHECK(parts == std::vector{Scope(), Scope(IPPROTO_TCP, 1, 49), Scope(IPPROTO_TCP, 50, 100),
                               Scope(IPPROTO_TCP, 101, 200), Scope(IPPROTO_UDP, 53)});
    CHECK(parts_of(low, parts).value().size() == 2);
    CHECK(parts_of(high, parts).value().size() == 2);
    CHECK(parts_of(Scope(), parts).value() == std::vector{Scope()});
    CHECK_FALSE(parts_of(Scope(IPPROTO_TCP, 1, 60), parts).has_value());
    CHECK_FALSE(parts_of(Scope(IPPROTO_UDP, 54), parts).has_value());
    CHECK_FALSE(parts_of(Scope(Scope::kOthers), parts).has_value());
    CHECK(partition({Scope(IPPROTO_TCP, 0, 65535), Scope(IPPROTO_TCP, 443)}).size() == 3);
}

TEST_CASE("denials come before learned addresses, and those before what is allowed by default") {
    PolicyRules rules;
    rules.learned_scopes = {Scope(IPPROTO_TCP, 443)};
    CHECK(judge_tcp(rules, "1.2.3.4", 443) == Judgement::refused);
    CHECK(judge_tcp(rules, "1.2.3.4", 443, true) == Judgement::allowed);
    CHECK(judge_tcp(rules, "1.2.3.4", 80, true) == Judgement::refused);
    rules.denied = {Prefix(at("1.2.3.0"), 24)};
    CHECK(judge_tcp(rules, "1.2.3.4", 443, true) == Judgement::refused);
    rules.allow_by_default = true;
    CHECK(judge_tcp(rules, "1.2.3.4", 443) == Judgement::refused);
    CHECK(judge_tcp(rules, "1.2.4.4", 443) == Judgement::allowed);
    CHECK(judge_tcp(rules, "1.2.4.4", 853) == Judgement::refused);
}

TEST_CASE("only a literal rule within a private range opens it") {
    PolicyRules rules;
    rules.learned_scopes = {Scope()};
    CHECK(judge_tcp(rules, "169.254.169.254", 80, true) == Judgement::refused);
    CHECK(judge_tcp(rules, "::ffff:10.0.0.1", 80, true) == Judgement::refused);
    rules.allowed = {Prefix(at("0.0.0.0"), 0)};
    CHECK(judge_tcp(rules, "169.254.169.254", 80) == Judgement::refused);
    CHECK(judge_tcp(rules, "1.1.1.1", 80) == Judgement::allowed);
    rules.allowed.emplace_back(Prefix(at("10.1.0.0"), 16), Scope(IPPROTO_TCP, 80));
    CHECK(judge_tcp(rules, "10.1.0.1", 80) == Judgement::allowed);
    CHECK(judge_tcp(rules, "10.1.0.1", 81) == Judgement::refused);
    CHECK(judge_tcp(rules, "10.2.0.1", 80) == Judgement::refused);
    rules.refuse_private = false;
    CHECK(judge_tcp(rules, "10.2.0.1", 80) == Judgement::allowed);
}

TEST_CASE("intercepted ports go to the interceptor, and QUIC does not go past it") {
    PolicyRules rules;
    rules.learned_scopes = {Scope()};
    rules.intercepted_ports = {443};
    CHECK(judge_tcp(rules, "1.1.1.1", 443, true) == Judgement::intercepted);
    CHECK(judge_tcp(rules, "1.1.1.1", 444, true) == Judgement::allowed);
    const auto learned = [](const Scope&) { return true; };
    CHECK(judge(rules, at("1.1.1.1"), IPPROTO_UDP, 443, learned) == Judgement::refused);
    CHECK(judge(rules, at("1.1.1.1"), IPPROTO_ICMP, 0, learned) == Judgement::allowed);
}

TEST_CASE("DNS over HTTPS is refused to its servers, or to all when none are named") {
    PolicyRules rules;
    rules.allow_by_default = true;
    rules.block_doh = true;
    rules.doh_servers = {Prefix(at("9.9.9.9"))};
    CHECK(judge_tcp(rules, "9.9.9.9", 443) == Judgement::refused);
    CHECK(judge_tcp(rules, "9.9.9.9", 80) == Judgement::allowed);
    CHECK(judge_tcp(rules, "1.1.1.1", 443) == Judgement::allowed);
    rules.doh_servers.clear();
    CHECK(judge_tcp(rules, "1.1.1.1", 443) == Judgement::refused);
}

TEST_CASE("equal policies have the same digest, whatever the order they were written in") {
    PolicyRules one;
    one.denied = {Prefix(at("1.1.1.1")), Prefix(at("2.2.2.2"))};
    PolicyRules other;
    other.denied = {Prefix(at("2.2.2.2")), Prefix(at("1.1.1.1")), Prefix(at("1.1.1.1"))};
    one.normalize();
    other.normalize();
    CHECK(one.digest() == other.digest());
    other.allow_by_default = true;
    CHECK(one.digest() != other.digest());
    PolicyRules allowed;
    allowed.allowed = one.denied;
    CHECK(one.digest() != allowed.digest());
}
