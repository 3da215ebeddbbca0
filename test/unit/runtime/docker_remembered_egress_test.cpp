#include "runtime/docker/remembered_egress.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::docker;

TEST_CASE("what starts from a snapshot is asked what its source was, with the policy of then",
          "[runtime][docker]") {
    SandboxSpec source;
    source.network_policy.emplace();
    source.credential_proxy = source.credential_bound = true;
    source.egress_env = {{"OPENSANDBOX_EGRESS_LOG_LEVEL", "de\"bug\n"}};
    auto label = remember_egress(describe_egress(source),
                                 R"({"mode":"deny","policy":{"defaultAction":"deny","egress":[
            {"action":"allow","target":"192.0.2.0/24","ports":[80,443]}]}})");
    REQUIRE(label);
    SandboxSpec copy;
    REQUIRE(guard_alike(*label, copy));
    CHECK(model::to_json(*copy.network_policy) ==
          R"({"defaultAction":"deny","egress":[)"
          R"({"action":"allow","target":"192.0.2.0/24","ports":[80,443]}]})");
    CHECK(copy.credential_proxy);
    CHECK(copy.credential_bound);
    CHECK(copy.egress_env == source.egress_env);
}

TEST_CASE("a sidecar of another program has no label and is asked for its policy alone",
          "[runtime][docker]") {
    auto label = remember_egress("", R"({"policy":{"defaultAction":"deny","egress":[]}})");
    REQUIRE(label);
    SandboxSpec copy;
    REQUIRE(guard_alike(*label, copy));
    CHECK(copy.network_policy->default_action == "deny");
    CHECK_FALSE(copy.credential_proxy);
}

TEST_CASE("a policy that cannot be read guards nothing and is an error", "[runtime][docker]") {
    for (std::string_view answer :
         {"", "[]", "{}", R"({"policy":null})", R"({"policy":[]})",
          R"({"policy":{"defaultAction":"deny","narrower":true}})",
          R"({"policy":{"egress":[{"action":"allow","target":"a","ports":"80"}]}})"}) {
        INFO(answer);
        CHECK_FALSE(remember_egress("{}", answer));
    }
    CHECK_FALSE(remember_egress("no JSON", R"({"policy":{}})"));
    CHECK_FALSE(remember_egress(R"({"credentialProxy":"yes"})", R"({"policy":{}})"));
    SandboxSpec copy;
    for (std::string_view label : {"", "{", "{}", R"({"networkPolicy":7})"}) {
        INFO(label);
        REQUIRE_FALSE(guard_alike(label, copy));
        CHECK_FALSE(copy.network_policy);
    }
}

TEST_CASE("any text is a label's value", "[runtime][docker]") {
    CHECK(label_instruction("a.b", R"({"c":"$D\\n"})") == R"(LABEL a.b="{\"c\":\"\$D\\\\n\"}")");
}
