#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::egress;
using test::address;

namespace {

std::string why(const NameVerdict& verdict) {
    return to_string(verdict.reason, verdict.allowed);
}

std::string why(const Verdict& verdict) {
    return to_string(verdict.reason, verdict.allowed);
}

}  // namespace

TEST_CASE("the first rule for a name decides, not the most specific") {
    const EffectivePolicy policy({}, test::policy({"deny *.bad.example.com", "allow *.example.com",
                                                   "deny api.example.com", "allow example.org"}));
    CHECK(why(policy.judge_name("API.example.com.")) == "policy rule 1: allow *.example.com");
    CHECK(policy.judge_name("a.b.example.com").allowed);
    CHECK(why(policy.judge_name("x.bad.example.com")) == "policy rule 0: deny *.bad.example.com");
    CHECK(policy.judge_name("bad.example.com").allowed);
    CHECK(policy.judge_name("example.org").allowed);
    CHECK(policy.judge_name("example.org").granted.is_all());
    // A wildcard is not its apex, and no suffix of letters.
    CHECK(why(policy.judge_name("example.com")) == "default: deny");
    CHECK(why(policy.judge_name("notexample.com")) == "default: deny");
    CHECK(why(policy.judge_name("sub.example.org")) == "default: deny");
    CHECK(why(policy.judge_name("")) == "default: deny");
    CHECK(why(policy.judge_name(".")) == "default: deny");
}

TEST_CASE("without a rule the default action decides") {
    const EffectivePolicy policy({},
                                 test::policy({"deny a.example", "deny 1.2.3.4"}, Action::allow));
    CHECK(why(policy.judge_name("b.example")) == "default: allow");
    CHECK(policy.judge_name("b.example").granted.is_all());
    CHECK(policy.judge_name("b.example").refused.empty());
    CHECK(policy.judge_name("a.example").refused.is_all());
    CHECK(why(policy.judge_address(address("1.2.3.4"), Transport::tcp, 80)) ==
          "policy rule 1: deny 1.2.3.4");
}

TEST_CASE("the overlay comes before the user's rules and is told in the reason") {
    Overlay overlay;
    overlay.deny = test::rules({"deny *.evil.example", "deny 169.254.169.254"});
    overlay.allow = test::rules({"allow *.infra.example", "allow x.evil.example"});
    const EffectivePolicy policy(
        overlay,
        test::policy({"allow *.evil.example", "deny *.infra.example", "allow 169.254.0.0/16"}));
    CHECK(why(policy.judge_name("x.evil.example")) == "deny.always rule 0: deny *.evil.example");
    CHECK(why(policy.judge_name("a.infra.example")) ==
          "allow.always rule 0: allow *.infra.example");
    CHECK(why(policy.judge_address(address("169.254.169.254"), Transport::tcp, 80)) ==
          "deny.always rule 1: deny 169.254.169.254");
    CHECK(why(policy.judge_address(address("169.254.1.1"), Transport::tcp, 80)) ==
          "policy rule 2: allow 169.254.0.0/16");
    CHECK(policy.user().rules.size() == 3);
    CHECK(policy.rules().size() == 7);
}

TEST_CASE("a rule with a port grants that port only") {
    const EffectivePolicy policy({}, test::policy({"allow api.example.com:443/tcp",
                                                   "allow api.example.com:80", "deny db.example"}));
    const NameVerdict verdict = policy.judge_name("api.example.com");
    CHECK(verdict.allowed);
    CHECK(verdict.granted.to_string() == "tcp 80,443 udp 80");
    CHECK(why(verdict) == "policy rule 0: allow api.example.com:443/tcp");
    CHECK(policy.judge_name("api.example.com", Transport::tcp, 443).allowed);
    CHECK(why(policy.judge_name("api.example.com", Transport::udp, 80)) ==
          "policy rule 1: allow api.example.com:80");
    CHECK(why(policy.judge_name("api.example.com", Transport::udp, 443)) == "default: deny");
    CHECK_FALSE(policy.judge_name("api.example.com", Transport::other, 0).allowed);
    CHECK(why(policy.judge_name("db.example", Transport::tcp, 1)) ==
          "policy rule 2: deny db.example");
}

TEST_CASE("for each port the first rule that covers it decides") {
    const EffectivePolicy policy(
        {}, test::policy(
                {"deny *.example.com:25", "allow mail.example.com", "allow *.example.com:25-26"}));
    const NameVerdict mail = policy.judge_name("mail.example.com");
    CHECK(mail.allowed);
    CHECK(mail.granted.to_string() == "tcp 0-24,26-65535 udp 0-24,26-65535 other");
    CHECK(mail.refused.to_string() == "tcp 25 udp 25");
    CHECK(why(mail) == "policy rule 1: allow mail.example.com");
    CHECK(to_string(mail.refused_by, false) == "policy rule 0: deny *.example.com:25");
    const NameVerdict www = policy.judge_name("www.example.com");
    CHECK(www.granted.to_string() == "tcp 26 udp 26");
    CHECK(why(www) == "policy rule 2: allow *.example.com:25-26");
}

TEST_CASE("a name with refused ports only is refused unless the default allows the rest") {
    const auto rules = {std::string_view("deny a.example:25")};
    const EffectivePolicy closed({}, test::policy(rules));
    CHECK_FALSE(closed.judge_name("a.example").allowed);
    CHECK(why(closed.judge_name("a.example")) == "policy rule 0: deny a.example:25");
    const EffectivePolicy open({}, test::policy(rules, Action::allow));
    CHECK(why(open.judge_name("a.example")) == "default: allow");
    CHECK_FALSE(open.judge_name("a.example").granted.contains(Transport::tcp, 25));
    CHECK(open.judge_name("a.example").granted.contains(Transport::other, 0));
}

TEST_CASE("rules behind one without a limit are not reached") {
    const EffectivePolicy policy({}, test::policy({"deny a.example:25", "allow a.example",
                                                   "deny a.example:80", "deny *.example"}));
    CHECK(policy.judge_name("a.example").granted.contains(Transport::tcp, 80));
    CHECK(policy.judge_name("a.example", Transport::tcp, 80).allowed);
    CHECK_FALSE(policy.judge_name("a.example", Transport::tcp, 25).allowed);
}

TEST_CASE("a dot within a label does not end it") {
    const EffectivePolicy policy({}, test::policy({"deny *.evil.example"}, Action::allow));
    CHECK_FALSE(policy.judge_name("a.evil.example").allowed);
    CHECK(policy.judge_name("a\\.evil.example").allowed);
    CHECK_FALSE(policy.judge_name("a\\\\.evil.example").allowed);
    CHECK_FALSE(policy.judge_name("\\.\\\\\\..evil.example").allowed);
    CHECK(policy.judge_name("\\\\\\.evil.example").allowed);
}

TEST_CASE("the queried name decides for a chain of aliases unless a rule denies one") {
    const EffectivePolicy policy(
        {}, test::policy({"allow api.example.com", "deny *.bad.example", "deny cdn.example:25",
                          "deny only.example:443"}));
    using Names = std::vector<std::string>;
    CHECK(policy.judge_chain(Names{"api.example.com", "edge.elsewhere.example"}).allowed);
    CHECK(policy.judge_chain(Names{"api.example.com"}).granted.is_all());
    const NameVerdict bad =
        policy.judge_chain(Names{"api.example.com", "x.elsewhere.example", "y.bad.example"});
    CHECK_FALSE(bad.allowed);
    CHECK(why(bad) == "policy rule 1: deny *.bad.example");
    CHECK(bad.decided_by == 2);
    CHECK(bad.granted.empty());
    const NameVerdict part = policy.judge_chain(Names{"api.example.com", "cdn.example"});
    CHECK(part.allowed);
    CHECK_FALSE(part.granted.contains(Transport::tcp, 25));
    CHECK(part.granted.contains(Transport::tcp, 26));
    CHECK_FALSE(policy.judge_chain(Names{"unknown.example", "api.example.com"}).allowed);
    CHECK_FALSE(policy.judge_chain(Names{}).allowed);
}

TEST_CASE("a scoped grant that an alias takes away whole is a refusal by the alias's rule") {
    const EffectivePolicy policy(
        {}, test::policy(
                {"allow api.example.com:443", "deny cdn.example:443", "allow cdn.example:80"}));
    const std::vector<std::string> names{"api.example.com", "cdn.example"};
    const NameVerdict verdict = policy.judge_chain(names);
    CHECK_FALSE(verdict.allowed);
    CHECK(why(verdict) == "policy rule 1: deny cdn.example:443");
}

TEST_CASE("of addresses a denial beats what was learned, and that beats the rest") {
    const EffectivePolicy policy(
        {}, test::policy({"allow 10.0.0.0/8", "deny 10.1.0.0/16", "allow 10.1.2.3",
                          "allow [fd00::/8]:443/tcp", "deny fd00::5", "allow name.example"}));
    const auto judge = [&](std::string_view to, bool learned = false) {
        return policy.judge_address(address(to), Transport::tcp, 443, learned);
    };
    CHECK(why(judge("10.2.0.1")) == "policy rule 0: allow 10.0.0.0/8");
    CHECK(why(judge("10.1.2.3")) == "policy rule 1: deny 10.1.0.0/16");
    CHECK(why(judge("10.1.2.3", true)) == "policy rule 1: deny 10.1.0.0/16");
    CHECK(why(judge("10.2.0.1", true)) == "learned: allow");
    CHECK(why(judge("8.8.8.8")) == "default: deny");
    CHECK(why(judge("8.8.8.8", true)) == "learned: allow");
    CHECK(judge("fd00::1").allowed);
    CHECK_FALSE(judge("fd00::5").allowed);
    CHECK_FALSE(policy.judge_address(address("fd00::1"), Transport::udp, 443).allowed);
    CHECK_FALSE(policy.judge_address(address("fd00::1"), Transport::other, 0).allowed);
    CHECK(policy.judge_address(address("10.0.0.1"), Transport::other, 0).allowed);
}

TEST_CASE("a rule for the address itself is what lets a special address be learned") {
    const EffectivePolicy policy(
        {}, test::policy({"allow 10.0.0.0/8", "deny 10.0.0.0/24:22", "allow 192.168.0.1:80",
                          "allow x.example", "allow 0.0.0.0/0", "allow ::/0", "deny 9.9.9.9:25"},
                         Action::allow));
    const auto learnable = [&](std::string_view text, const PortSet& granted = PortSet::all()) {
        return policy.learnable(address(text), granted);
    };
    CHECK(learnable("10.5.0.1").is_all());
    CHECK_FALSE(learnable("10.0.0.1").contains(Transport::tcp, 22));
    CHECK(learnable("10.0.0.1").contains(Transport::tcp, 23));
    CHECK(learnable("192.168.0.1").to_string() == "tcp 80 udp 80");
    // A wider network does not open a special one.
    CHECK(learnable("172.16.0.1").empty());
    CHECK(learnable("169.254.169.254").empty());
    CHECK(learnable("fd00::1").empty());
    CHECK(learnable("::ffff:8.8.8.8").empty());
    CHECK(learnable("8.8.8.8").is_all());
    CHECK_FALSE(learnable("9.9.9.9").contains(Transport::tcp, 25));
    const PortSet https = PortSet::of(Scope(true, false, {443, 443}));
    CHECK(learnable("8.8.8.8", https) == https);
    CHECK(learnable("10.5.0.1", https) == https);
    CHECK(learnable("192.168.0.1", https).empty());

    CHECK(policy.allowed_by_address(address("172.16.0.1")).is_all());
    CHECK(policy.denied_by_address(address("10.0.0.1")).to_string() == "tcp 22 udp 22");
}

TEST_CASE("ten thousand rules decide as a scan over them would") {
    Policy many;
    for (int i = 0; i < 10'000; ++i) {
        const std::string base = "n" + std::to_string(i % 3000) + ".example.com";
        const char* form = i % 3 == 0 ? "allow *." : (i % 3 == 1 ? "deny " : "allow ");
        many.rules.push_back(test::written_rule(form + base + (i % 7 == 0 ? ":443" : "")));
    }
    const EffectivePolicy policy({}, many);
    std::size_t allowed = 0;
    for (int i = 0; i < 3100; ++i) {
        for (const char* prefix : {"", "a.b."}) {
            const std::string name = std::string(prefix) + "n" + std::to_string(i) + ".example.com";
            bool expected = false;
            for (const PolicyRule& rule : many.rules) {
                const Target& target = *rule.target;
                const bool hit = target.kind() == Target::Kind::name
                                     ? name == target.name()
                                     : name.ends_with("." + target.name());
                if (!hit || !target.scope().covers(Transport::tcp, 80)) continue;
                expected = rule.action == Action::allow;
                break;
            }
            if (expected != policy.judge_name(name, Transport::tcp, 80).allowed) FAIL(name);
            if (expected) ++allowed;
        }
    }
    CHECK(allowed > 1000);
}

TEST_CASE("many rules for the ports of one name grant what a scan over them would") {
    std::vector<std::string> texts;
    for (int i = 0; i < 600; ++i) {
        const int first = 1 + (i * 7919) % 2000;
        texts.push_back((i % 3 == 0 ? "deny" : "allow") + std::string(" a.example:") +
                        std::to_string(first) + "-" + std::to_string(first + i % 40) +
                        (i % 5 == 0 ? "/tcp" : ""));
    }
    Policy many;
    for (const std::string& text : texts)
        many.rules.push_back(test::written_rule(text));
    const EffectivePolicy policy({}, many);
    const NameVerdict verdict = policy.judge_name("a.example");
    for (const Transport transport : {Transport::tcp, Transport::udp}) {
        for (std::uint32_t port = 0; port < 2100; ++port) {
            const auto number = static_cast<std::uint16_t>(port);
            const bool one = policy.judge_name("a.example", transport, number).allowed;
            if (verdict.granted.contains(transport, number) != one) FAIL(port);
            if (one && verdict.refused.contains(transport, number)) FAIL(port);
        }
    }
    CHECK_FALSE(verdict.granted.other());
    CHECK(verdict.granted.tcp().size() > 10);
}
