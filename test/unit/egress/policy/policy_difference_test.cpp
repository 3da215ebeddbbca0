#include "egress/policy/policy_difference.hpp"

#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::egress;
using test::address;

TEST_CASE("a difference tells which names lost something") {
    const EffectivePolicy before(
        {}, test::policy({"allow a.example", "allow *.b.example", "allow c.example"}));
    const EffectivePolicy after(
        {}, test::policy({"deny x.b.example", "allow *.b.example", "allow c.example:443"}));
    const PolicyDifference difference(before, after);
    CHECK(difference.added().size() == 2);
    CHECK(difference.removed().size() == 2);
    CHECK_FALSE(difference.default_changed());
    CHECK(difference.lost("A.example.").is_all());
    CHECK(difference.lost("x.b.example").is_all());
    CHECK(difference.lost("y.b.example").empty());
    CHECK_FALSE(difference.touches("y.b.example"));
    CHECK(difference.touches("c.example"));
    CHECK_FALSE(difference.lost("c.example").contains(Transport::tcp, 443));
    CHECK(difference.lost("c.example").contains(Transport::tcp, 80));
    CHECK(difference.lost("other.example").empty());
}

TEST_CASE("a rule that moved behind another one is noticed") {
    const EffectivePolicy before({}, test::policy({"allow a.example", "deny *.example"}));
    const EffectivePolicy after({}, test::policy({"deny *.example", "allow a.example"}));
    CHECK(PolicyDifference(before, after).added().empty());
    CHECK(PolicyDifference(before, after).lost("a.example").is_all());
    CHECK(PolicyDifference(after, before).lost("a.example").empty());
    CHECK_FALSE(PolicyDifference(before, before).touches("a.example"));
}

TEST_CASE("a stricter default takes everything that no rule allows") {
    const EffectivePolicy before({},
                                 test::policy({"allow a.example", "allow 1.2.3.4"}, Action::allow));
    const EffectivePolicy after({}, test::policy({"allow a.example", "allow 1.2.3.4"}));
    const PolicyDifference difference(before, after);
    CHECK(difference.default_changed());
    CHECK(difference.lost("a.example").empty());
    CHECK(difference.lost("b.example").is_all());
    CHECK(difference.lost(address("1.2.3.4"), false).empty());
    CHECK(difference.lost(address("1.2.3.5"), false).is_all());
    CHECK(difference.lost(address("1.2.3.5"), true).empty());
    CHECK(difference.blocks().size() == 2);
    CHECK(PolicyDifference(after, before).blocks().empty());
}

TEST_CASE("addresses lose by their own rules") {
    const EffectivePolicy before(
        {}, test::policy({"allow 10.0.0.0/8", "allow 11.0.0.0/8", "deny 12.0.0.0/8"}));
    const EffectivePolicy after(
        {}, test::policy({"deny 10.1.0.0/16:22", "allow 10.0.0.0/8", "deny 9.9.9.9"}));
    const PolicyDifference difference(before, after);
    CHECK(difference.lost(address("10.1.0.1"), false).to_string() == "tcp 22 udp 22");
    CHECK(difference.lost(address("10.2.0.1"), false).empty());
    CHECK(difference.lost(address("11.0.0.1"), false).is_all());
    CHECK(difference.lost(address("11.0.0.1"), true).empty());
    CHECK(difference.lost(address("9.9.9.9"), false).empty());
    CHECK(difference.lost(address("9.9.9.9"), true).is_all());
    CHECK(difference.lost(address("12.0.0.1"), true).empty());
    CHECK(difference.blocks().size() == 4);
}
