#include "unit/egress/role/host_world.hpp"
#include "unit/egress/role/intercepted_peers.hpp"
#include "unit/egress/rules/open_connection.hpp"

using namespace opensandbox;
using namespace opensandbox::test;
using egress::Enforcer;
using test_support::Identity;
using test_support::issue;

namespace {

constexpr const char* kVaultOfGood =
    R"({"credentials":[{"name":"key","source":{"value":"s3cret-value"}}],)"
    R"("bindings":[{"name":"api","match":{"hosts":["good.test"]},)"
    R"("auth":{"type":"bearer","credential":"key"}}]})";

/// A host whose sandboxes have only those connections intercepted that a credential is bound to.
struct SelectionWorld : HostWorld {
    SelectionWorld() {
        authority.write_certificate(directory.path / "origins.pem");
        adjust = [this](egress::EnforcerSettings& settings) {
            settings.upstream_extra_ca = directory.path / "origins.pem";
            settings.passed = passed;
        };
    }
    static egress::GuardedSpec bound(const EgressSandbox& sandbox) {
        egress::GuardedSpec made = spec(sandbox, allow_name("good.test"));
        made.environment["OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT"] = "true";
        made.environment["OPENSANDBOX_EGRESS_MITMPROXY_INTERCEPTION_MODE"] = "credential-bound";
        return made;
    }
    /// What comes back from good.test by the server's own certificate.
    Awaitable<std::string> read_directly(const EgressSandbox& sandbox) {
        auto seen = secure_answer(https, origin);
        auto heard = secure_get(sandbox.place, "192.0.2.2", pem_of(authority), "good.test");
        std::string answer = co_await result_of(heard);
        CHECK_THAT(co_await result_of(seen), !Contains("Authorization"));
        co_return answer;
    }

    egress::PassThroughList passed;
    Identity authority = issue("origin authority", "", nullptr);
    Identity origin = issue("origin", "DNS:good.test", &authority);
    Listener https{net.outside, "192.0.2.2", 443};
};

}  // namespace

TEST_CASE("of two sandboxes of a host, only the one with a credential is read", "[egress]") {
    SelectionWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        for (const auto* sandbox : {&a, &b}) {
            CHECK(co_await enforcer.guard(world.bound(*sandbox)));
            CHECK(co_await world.query(*sandbox, "good.test") == 0);
        }
        CHECK_THAT(co_await world.read_directly(a), Contains("X-Echo: none"));
        CHECK_THAT(co_await world.ask(a, "POST", "/credential-vault", kVaultOfGood),
                   Contains("201 Created"));
        CHECK_THAT(co_await world.ask(a, "GET", "/metrics"),
                   Contains(R"(egress_credential_vault_state{state="active"} 1)"));
        auto seen = secure_answer(world.https, world.origin);
        auto heard = secure_get(a.place, "192.0.2.2", enforcer.authority_pem(), "good.test");
        CHECK_THAT(co_await result_of(heard), Contains("200 OK") && !Contains("s3cret"));
        CHECK_THAT(co_await result_of(seen), Contains("Authorization: Bearer s3cret-value"));
        CHECK_THAT(co_await world.read_directly(b), Contains("X-Echo: none"));
        CHECK_THAT(co_await world.ask(a, "DELETE", "/credential-vault"), Contains("204"));
        CHECK_THAT(co_await world.read_directly(a), Contains("X-Echo: none"));
        CHECK_THAT(co_await world.ask(a, "GET", "/metrics"),
                   Contains(R"(decision="passthrough",reason="no_binding_host"} 2)") &&
                       Contains(R"(decision="decrypt",reason="binding_host"} 1)"));
    });
}

TEST_CASE("a vault that went with an enforcer lets nothing pass by name", "[egress]") {
    SelectionWorld world;
    const auto& [a, b] = std::tie(world.net.a, world.net.b);
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        CHECK(co_await enforcer.guard(world.bound(a)));
        CHECK(co_await enforcer.guard(world.bound(b)));
        CHECK_THAT(co_await world.ask(a, "POST", "/credential-vault", kVaultOfGood),
                   Contains("201 Created"));
    });
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        for (const auto* sandbox : {&a, &b}) {
            CHECK(co_await enforcer.guard(world.bound(*sandbox)));
            CHECK(co_await world.query(*sandbox, "good.test") == 0);
        }
        // One that never had a vault has lost nothing.
        CHECK_THAT(co_await world.read_directly(b), Contains("X-Echo: none"));
        CHECK_THAT(co_await world.ask(a, "GET", "/credential-vault"),
                   Contains("503") && Contains("CREDENTIAL_REVISION_INDETERMINATE"));
        auto heard = secure_get(a.place, "192.0.2.2", pem_of(world.authority), "good.test");
        CHECK(co_await result_of(heard) == "no TLS");
        CHECK_THAT(co_await world.ask(a, "GET", "/policy/denials"), Contains("bootstrapping"));
        CHECK_THAT(co_await world.ask(a, "DELETE", "/credential-vault"), Contains("204"));
        CHECK_THAT(co_await world.read_directly(a), Contains("X-Echo: none"));
    });
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        CHECK(co_await enforcer.guard(world.bound(a)));
        CHECK_THAT(co_await world.ask(a, "GET", "/credential-vault"), Contains("404"));
    });
}

TEST_CASE("an operator's list that cannot be compared with bindings refuses the mode", "[egress]") {
    SelectionWorld world;
    world.passed = egress::pass_through_list({"^good"}).value();
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const Status refused = co_await enforcer.guard(world.bound(world.net.a));
        CHECK_FALSE(refused);
        CHECK_THAT(refused.error().message(), Contains("PASSTHROUGH_HOSTS"));
    });
    world.passed = egress::pass_through_list({"good.test"}).value();
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& a = world.net.a;
        CHECK(co_await enforcer.guard(world.bound(a)));
        CHECK(co_await world.query(a, "good.test") == 0);
        CHECK_THAT(co_await world.ask(a, "POST", "/credential-vault", kVaultOfGood),
                   Contains("400") && Contains("not intercepted"));
        CHECK_THAT(co_await world.read_directly(a), Contains("X-Echo: none"));
        CHECK_THAT(co_await world.ask(a, "GET", "/metrics"),
                   Contains(R"(reason="static_ignore"} 1)"));
    });
}
