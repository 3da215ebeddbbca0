#include "unit/egress/role/host_world.hpp"
#include "unit/egress/role/intercepted_peers.hpp"
#include "unit/egress/rules/open_connection.hpp"

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using egress::Enforcer;
using test_support::Identity;
using test_support::issue;

namespace {

constexpr const char* kIntercept = "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT";
constexpr const char* kInsecure = "OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE";
constexpr const char* kVault =
    R"({"credentials":[{"name":"key","source":{"value":"s3cret-value"}}],)"
    R"("bindings":[{"name":"api","match":{"hosts":["good.test"]},)"
    R"("auth":{"type":"bearer","credential":"key"}}]})";

/// A host with interception, and a server outside that an authority names good.test.
struct InterceptionWorld : HostWorld {
    InterceptionWorld() {
        authority.write_certificate(directory.path / "origins.pem");
        adjust = [this](egress::EnforcerSettings& settings) {
            settings.upstream_extra_ca = directory.path / "origins.pem";
        };
    }
    static egress::GuardedSpec intercepted(const EgressSandbox& sandbox,
                                           const std::string& policy) {
        egress::GuardedSpec made = spec(sandbox, policy);
        made.environment[kIntercept] = "true";
        return made;
    }

    Identity authority = issue("origin authority", "", nullptr);
    Identity origin = issue("origin", "DNS:good.test", &authority);
    Listener https{net.outside, "192.0.2.2", 443};
};

}  // namespace

TEST_CASE("a host puts credentials into the requests of one sandbox, and leaves others alone",
          "[egress]") {
    InterceptionWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        const std::string policy = world.allow_name("good.test");
        CHECK(co_await enforcer.guard(world.intercepted(a, policy)));
        CHECK(co_await enforcer.guard(world.spec(b, policy)));
        CHECK_THAT(co_await world.ask(a, "POST", "/credential-vault", kVault),
                   Contains("201 Created"));
        CHECK_THAT(co_await world.ask(b, "POST", "/credential-vault", kVault), Contains("412"));
        CHECK(co_await world.query(a, "good.test") == 0);
        CHECK(co_await world.query(b, "good.test") == 0);

        auto seen = secure_answer(world.https, world.origin);
        auto heard = secure_get(a.place, "192.0.2.2", enforcer.authority_pem(), "good.test");
        CHECK_THAT(co_await result_of(heard),
                   Contains("200 OK") && Contains("[REDACTED]") && !Contains("s3cret"));
        CHECK_THAT(co_await result_of(seen), Contains("Authorization: Bearer s3cret-value"));

        // The other one speaks with the server itself.
        seen = secure_answer(world.https, world.origin);
        heard = secure_get(b.place, "192.0.2.2", pem_of(world.authority), "good.test");
        CHECK_THAT(co_await result_of(heard), Contains("X-Echo: none"));
        CHECK_THAT(co_await result_of(seen), !Contains("Authorization"));
        CHECK_THAT(co_await world.ask(a, "GET", "/credential-vault"), !Contains("s3cret"));
        CHECK_THAT(co_await world.ask(b, "GET", "/credential-vault"), Contains("404"));
    });
}

TEST_CASE("a host intercepts over IPv6 as over IPv4", "[egress]") {
    InterceptionWorld world;
    world.names["good.test"] = "2a00:5300::7";
    world.net.add_outside("2a00:5300::7");
    const Listener https(world.net.outside, "2a00:5300::7", 443);
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& a = world.net.a;
        CHECK(co_await enforcer.guard(world.intercepted(a, world.allow_name("good.test"))));
        CHECK(co_await world.query(a, "good.test", "2a00:5300::53") == 0);
        auto seen = secure_answer(https, world.origin);
        auto heard = secure_get(a.place, "2a00:5300::7", enforcer.authority_pem(), "good.test");
        CHECK_THAT(co_await result_of(heard), Contains("200 OK"));
        CHECK_THAT(co_await result_of(seen), Contains("GET /x"));
        heard = secure_get(a.place, "2a00:5300::7", enforcer.authority_pem(), "evil.test");
        CHECK(co_await result_of(heard) == "no TLS");
    });
}

TEST_CASE("an intercepted name stands only at the addresses that the sandbox was told",
          "[egress]") {
    InterceptionWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& a = world.net.a;
        const std::string both = R"({"egress":[{"action":"allow","target":"good.test"},)"
                                 R"({"action":"allow","target":"other.test"}]})";
        CHECK(co_await enforcer.guard(world.intercepted(a, both)));
        CHECK(co_await world.query(a, "good.test") == 0);
        for (const std::string name : {"other.test", "evil.test"}) {
            auto heard = secure_get(a.place, "192.0.2.2", enforcer.authority_pem(), name);
            CHECK(co_await result_of(heard) == "no TLS");
        }
        CHECK_THAT(co_await world.ask(a, "GET", "/policy/denials"),
                   Contains("evil.test") && Contains("other.test"));
    });
}

TEST_CASE("a sandbox's certificates are left unverified at its own wish only", "[egress]") {
    InterceptionWorld world;
    const Identity stranger = issue("stranger", "DNS:good.test", nullptr);
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        const std::string policy = world.allow_name("good.test");
        egress::GuardedSpec careless = world.intercepted(a, policy);
        careless.environment[kInsecure] = "true";
        CHECK(co_await enforcer.guard(careless));
        CHECK(co_await enforcer.guard(world.intercepted(b, policy)));
        CHECK(co_await world.query(a, "good.test") == 0);
        CHECK(co_await world.query(b, "good.test") == 0);
        auto seen = secure_answer(world.https, stranger);
        auto heard = secure_get(a.place, "192.0.2.2", enforcer.authority_pem(), "good.test");
        CHECK_THAT(co_await result_of(heard), Contains("200 OK"));
        CHECK_THAT(co_await result_of(seen), Contains("GET /x"));
        seen = secure_answer(world.https, stranger);
        heard = secure_get(b.place, "192.0.2.2", enforcer.authority_pem(), "good.test");
        CHECK_THAT(co_await result_of(heard), !Contains("200 OK"));
        CHECK(co_await result_of(seen) == "no TLS");
        // Credentials do not go to whoever is at the other end.
        CHECK_THAT(co_await world.ask(a, "POST", "/credential-vault", kVault), Contains("412"));
    });
}

TEST_CASE("interception leads to no address of the host", "[egress]") {
    InterceptionWorld world;
    world.names["host.test"] = "192.0.2.1";
    const auto web = bind_socket(world.net.host, "0.0.0.0", 80, SOCK_STREAM);
    CHECK(::listen(web.get(), 16) == 0);
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& a = world.net.a;
        CHECK(co_await enforcer.guard(world.intercepted(a, R"({"defaultAction":"allow"})")));
        CHECK(co_await world.query(a, "host.test") == 0);
        for (const std::string host : {"192.0.2.1", "host.test"}) {
            auto heard = plain_get(a.place, "192.0.2.1", 80, host);
            CHECK_THAT(co_await result_of(heard), !Contains("200 OK") && !Contains("502"));
        }
        CHECK_THAT(co_await world.ask(a, "GET", "/policy/denials"),
                   Contains("192.0.2.1") && Contains("host.test"));
    });
    pollfd came{web.get(), POLLIN, 0};
    CHECK(::poll(&came, 1, 0) == 0);
}

TEST_CASE("a sandbox's intercepted connections end with its permission", "[egress]") {
    InterceptionWorld world;
    const Listener web(world.net.outside, "192.0.2.2", 80);
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        for (const auto* sandbox : {&a, &b}) {
            CHECK(co_await enforcer.guard(
                world.intercepted(*sandbox, world.allow_name("good.test"))));
            CHECK(co_await world.query(*sandbox, "good.test") == 0);
        }
        const auto open = [&](const EgressSandbox& sandbox) {
            return plain_get(sandbox.place, "192.0.2.2", 80, "good.test");
        };
        const auto accepted = [&]() -> Awaitable<UniqueFd> {
            auto peer = std::async(std::launch::async, [&] {
                UniqueFd fd = web.accept();
                char request[4096];
                CHECK(::recv(fd.get(), request, sizeof(request), 0) > 0);
                return fd;
            });
            co_return co_await result_of(peer);
        };
        auto of_a = open(a);
        const UniqueFd to_a = co_await accepted();
        auto of_b = open(b);
        const UniqueFd to_b = co_await accepted();
        CHECK_THAT(co_await world.ask(a, "DELETE", "/policy", R"(["good.test"])"),
                   Contains("200 OK"));
        CHECK_THAT(co_await result_of(of_a), !Contains("200 OK"));
        // The other's is answered still.
        const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbye";
        CHECK(::send(to_b.get(), answer.data(), answer.size(), MSG_NOSIGNAL) > 0);
        CHECK_THAT(co_await result_of(of_b), Contains("200 OK"));

        of_b = open(b);
        const UniqueFd again = co_await accepted();
        co_await enforcer.release("box-egrb");
        CHECK_THAT(co_await result_of(of_b), !Contains("200 OK"));
    });
}

TEST_CASE("a sandbox is not guarded where interception is wanted and there is none", "[egress]") {
    InterceptionWorld world;
    world.adjust = [](egress::EnforcerSettings& settings) { settings.rules.interceptor_port = 0; };
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const Status done =
            co_await enforcer.guard(world.intercepted(world.net.a, world.allow_name("good.test")));
        REQUIRE_FALSE(done);
        CHECK(done.error().code() == ErrorCode::unsupported);
        CHECK(enforcer.authority_pem().empty());
        CHECK(world.reach(world.net.a, "192.0.2.2") == 0);
    });
}
