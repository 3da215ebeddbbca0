#include "egress/policy/address_rules.hpp"

#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::egress;

namespace {

std::string texts(const std::vector<ScopedBlocks>& list) {
    std::string out;
    for (const ScopedBlocks& scoped : list) {
        out += "(" + scoped.scope.to_string() + ")";
        for (const net::AddressBlock& block : scoped.v4)
            out += " " + block.to_string();
        for (const net::AddressBlock& block : scoped.v6)
            out += " " + block.to_string();
        out += "; ";
    }
    return out;
}

}  // namespace

TEST_CASE("a packet filter gets networks without overlap for each limit of ports") {
    Overlay overlay;
    overlay.deny = test::rules({"deny 169.254.169.254"});
    const EffectivePolicy policy(
        overlay, test::policy({"allow 8.8.4.0/24:53/udp", "allow 8.8.0.0/16", "deny 9.0.0.0/8",
                               "deny 9.1.2.3", "allow 8.8.8.8", "allow 2606:4700::/32",
                               "allow 8.8.0.0/16:53/udp", "allow name.example", "deny *.example"}));
    const AddressRules rules = address_rules(policy);
    CHECK(texts(rules.deny) == "() 9.0.0.0/8 169.254.169.254; ");
    CHECK(texts(rules.allow) == "() 8.8.0.0/16 2606:4700::/32; (:53/udp) 8.8.0.0/16; ");
    CHECK_FALSE(rules.allows_special());
    CHECK(rules.default_action == Action::deny);
}

TEST_CASE("what is allowed of special networks is told apart") {
    const EffectivePolicy policy(
        {}, test::policy(
                {"allow 10.1.0.0/16", "allow 10.1.2.3", "allow 8.8.8.8", "allow 0.0.0.0/1:80/tcp",
                 "allow fd00::/16", "allow 192.168.0.0/24:22", "allow [f000::/4]:443"},
                Action::allow));
    const AddressRules rules = address_rules(policy);
    CHECK(texts(rules.allow_special) == "() 10.1.0.0/16 fd00::/16; (:22) 192.168.0.0/24; ");
    CHECK(rules.allows_special());
    CHECK(rules.default_action == Action::allow);
    CHECK(address_rules(EffectivePolicy({}, {})) == AddressRules());
}
