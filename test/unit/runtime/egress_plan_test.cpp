#include "runtime/native/server/egress_plan.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::native;

namespace {

constexpr const char* kTransparent = "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT";
constexpr const char* kInsecure = "OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE";

SandboxSpec guarded() {
    SandboxSpec spec;
    spec.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    model::NetworkPolicy policy;
    policy.default_action = "deny";
    policy.egress.emplace_back("allow", "pypi.org");
    spec.network_policy = policy;
    return spec;
}

}  // namespace

TEST_CASE("a sandbox without networkPolicy is not guarded, whatever its environment says") {
    SandboxSpec spec;
    spec.egress_env = {{kTransparent, "true"}};
    const auto plan = plan_egress(spec, {}, {});
    REQUIRE(plan);
    CHECK_FALSE(plan->wanted);
    CHECK_FALSE(is_intercepted(*plan));
}

TEST_CASE("a guarded sandbox has its policy and its own settings, and no token yet") {
    SandboxSpec spec = guarded();
    spec.egress_env = {{"OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS", "8443"}};
    const auto plan = plan_egress(spec, {}, {});
    REQUIRE(plan);
    CHECK(plan->wanted);
    CHECK(plan->policy ==
          R"({"defaultAction":"deny","egress":[{"action":"allow","target":"pypi.org"}]})");
    CHECK(plan->token.empty());
    CHECK(plan->environment == Environment{{"OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS", "8443"}});
    CHECK_FALSE(is_intercepted(*plan));
}

TEST_CASE("credentialProxy turns interception on, once, whatever the request's environment says") {
    SandboxSpec spec = guarded();
    spec.credential_proxy = true;
    spec.egress_env = {{kTransparent, "false"}};
    const auto plan = plan_egress(spec, {}, {});
    REQUIRE(plan);
    CHECK(plan->environment == Environment{{kTransparent, "true"}});
    CHECK(is_intercepted(*plan));
}

TEST_CASE("the interception mode goes with the settings, and to copies") {
    constexpr const char* kMode = "OPENSANDBOX_EGRESS_MITMPROXY_INTERCEPTION_MODE";
    SandboxSpec spec = guarded();
    CHECK(interception_mode(*plan_egress(spec, {}, {})).empty());
    spec.credential_proxy = true;
    CHECK(interception_mode(*plan_egress(spec, {}, {})) == "all");
    spec.credential_bound = true;
    const auto plan = plan_egress(spec, {}, {});
    REQUIRE(plan);
    CHECK(plan->environment == Environment{{kTransparent, "true"}, {kMode, "credential-bound"}});
    CHECK(interception_mode(*plan) == "credential-bound");
    CHECK(interception_mode(*plan_egress(SandboxSpec(), *plan, {})) == "credential-bound");
}

TEST_CASE("unverified servers go with neither credentials nor an upstream proxy") {
    SandboxSpec spec = guarded();
    spec.egress_env = {{kTransparent, "1"}, {kInsecure, "yes"}};
    CHECK(plan_egress(spec, {}, {}));
    const Environment proxied{{"OPENSANDBOX_EGRESS_UPSTREAM_PROXY", "http://proxy.example:3128"}};
    auto plan = plan_egress(spec, {}, proxied);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().wire() == "SANDBOX::INVALID_PARAMETER");
    CHECK(plan.error().message().find(kInsecure) != std::string::npos);
    spec.credential_proxy = true;
    CHECK_FALSE(plan_egress(spec, {}, {}));
}

TEST_CASE("behind an upstream proxy only intercepted sandboxes can be guarded") {
    const Environment proxied{{"OPENSANDBOX_EGRESS_UPSTREAM_PROXY", "http://proxy.example:3128"}};
    SandboxSpec spec = guarded();
    const auto plan = plan_egress(spec, {}, proxied);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().message().find("egress.upstream_proxy") != std::string::npos);
    spec.credential_proxy = true;
    CHECK(plan_egress(spec, {}, proxied));
}

TEST_CASE("a copy is guarded as its source is") {
    EgressTerms source;
    source.wanted = true;
    source.policy = R"({"defaultAction":"deny","egress":[]})";
    source.environment = {{kTransparent, "true"}};
    SandboxSpec copy;
    const auto plan = plan_egress(copy, source, {});
    REQUIRE(plan);
    CHECK(plan->wanted);
    CHECK(plan->policy == source.policy);
    CHECK(is_intercepted(*plan));
}
