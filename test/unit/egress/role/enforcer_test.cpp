#include "unit/egress/role/host_world.hpp"
#include "unit/egress/role/intercepted_peers.hpp"
#include "unit/egress/rules/open_connection.hpp"

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using egress::Enforcer;

namespace {

constexpr int kNoSuchName = 3;
constexpr const char* kDenyGood = R"([{"action":"deny","target":"good.test"}])";

}  // namespace

TEST_CASE("a host's sandboxes reach what the names that each is allowed stand for", "[egress]") {
    HostWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        CHECK(co_await enforcer.guard(world.spec(a, world.allow_name("good.test"))));
        CHECK(co_await enforcer.guard(world.spec(b, world.allow_name("other.test"))));
        CHECK(world.reach(a, "192.0.2.2") != 0);
        CHECK(co_await world.query(a, "good.test") == 0);
        CHECK(world.reach(a, "192.0.2.2") == 0);
        CHECK(world.reach(b, "192.0.2.2") != 0);
        CHECK(co_await world.query(a, "other.test") == kNoSuchName);
        CHECK(co_await world.query(b, "good.test") == kNoSuchName);
        // Queries over IPv6 are whose link they come by, too.
        CHECK(co_await world.query(b, "other.test", "fd78::53") == 0);
        CHECK(co_await world.query(b, "other.test") == 0);
        CHECK(co_await world.query(b, "good.test", "fd78::53") == kNoSuchName);
        CHECK(world.reach(b, "198.51.100.7") == 0);
        CHECK(world.reach(a, "198.51.100.7") != 0);
    });
}

TEST_CASE("each sandbox of a host has its own API with its own token", "[egress]") {
    HostWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        CHECK(co_await enforcer.guard(world.spec(a, world.allow_name("good.test"))));
        CHECK(co_await enforcer.guard(world.spec(b)));
        CHECK_THAT(co_await world.request("/healthz", ""), Contains("200 OK"));
        CHECK_THAT(co_await world.ask(a, "GET", "/healthz"), Contains("200 OK"));
        CHECK_THAT(co_await world.ask(a, "GET", "/policy"),
                   Contains("good.test") && Contains("\"enforcementMode\":\"dns+nft\""));
        CHECK_THAT(co_await world.ask(b, "GET", "/policy"), Contains("deny_all"));
        const std::string other = "/sandboxes/box-egrb/policy";
        CHECK_THAT(co_await world.request(other, ""), Contains("401"));
        CHECK_THAT(co_await world.request(other, "token-egra"), Contains("401"));
        CHECK_THAT(co_await world.request(other, "token-egrb"), Contains("200 OK"));
        CHECK_THAT(co_await world.request("/sandboxes/none/policy", "token-egra"), Contains("404"));
        CHECK_THAT(co_await world.request("/sandboxes/box-egra", "token-egra"), Contains("404"));
        CHECK_THAT(co_await world.request("/policy", "token-egra"), Contains("404"));

        const std::string patch = R"([{"action":"allow","target":"good.test"}])";
        CHECK_THAT(co_await world.ask(b, "PATCH", "/policy", patch), Contains("200 OK"));
        CHECK(co_await world.query(b, "good.test") == 0);
        CHECK(world.reach(b, "192.0.2.2") == 0);
        CHECK_THAT(co_await world.ask(b, "PATCH", "/policy", R"([{"target":"http://x"}])"),
                   Contains("400") && Contains("egress[0]"));
        CHECK_THAT(co_await world.ask(a, "GET", "/metrics"),
                   Contains("egress_learned_addresses 0") && Contains("egress_policy_rules 1"));
    });
}

TEST_CASE("what one sandbox may no longer reach is cut, and another's connection goes on",
          "[egress]") {
    HostWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        const std::string policy = world.allow_name("good.test");
        CHECK(co_await enforcer.guard(world.spec(a, policy)));
        CHECK(co_await enforcer.guard(world.spec(b, policy)));
        CHECK(co_await world.query(a, "good.test") == 0);
        CHECK(co_await world.query(b, "good.test") == 0);
        const OpenConnection of_a(a.place, world.net.outside, "192.0.2.2", 8000);
        const OpenConnection of_b(b.place, world.net.outside, "192.0.2.2", 8001);
        CHECK_THAT(co_await world.ask(a, "PATCH", "/policy", kDenyGood), Contains("200 OK"));
        for (int i = 0; i < 500; ++i) {
            if (enforcer.metrics().find("egress_connections_cut_total 1") != std::string::npos)
                break;
            co_await net::sleep_for(10ms);
        }
        CHECK(of_a.send_error("after") == ECONNRESET);
        CHECK(of_b.carries("still"));
        CHECK(co_await world.query(a, "good.test") == kNoSuchName);
        CHECK(co_await world.query(b, "good.test") == 0);
    });
}

TEST_CASE("nothing is left of a sandbox that was released", "[egress]") {
    HostWorld world;
    const auto& a = world.net.a;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        CHECK(co_await enforcer.guard(world.spec(a, world.allow_name("good.test"))));
        CHECK(co_await world.query(a, "good.test") == 0);
        CHECK_THAT(co_await world.ask(a, "PATCH", "/policy",
                                      R"([{"action":"allow","target":"other.test"}])"),
                   Contains("200 OK"));
        co_await enforcer.release("box-egra");
        co_await enforcer.release("box-egra");
        co_await enforcer.release("never-there");
        CHECK_FALSE(enforcer.guards("box-egra"));
        CHECK_FALSE(std::filesystem::exists(world.settings().state_directory / "box-egra"));
        CHECK_THAT(co_await world.request("/sandboxes/box-egra/policy", "token-egra"),
                   Contains("404"));
        CHECK_THAT(enforcer.metrics(), Contains("egress_learned_addresses 0"));
        // Its name begins anew.
        CHECK(co_await enforcer.guard(world.spec(a)));
        CHECK_THAT(co_await world.ask(a, "GET", "/policy"), Contains("deny_all"));
        CHECK(world.reach(a, "192.0.2.2") != 0);
        co_await enforcer.release("box-egra");
    });
    const auto table = world.net.open();
    CHECK(table.unclaimed().empty());
    CHECK(table.learned().size() == 0);
}

TEST_CASE("an enforcer goes on with the policies and addresses of the one before", "[egress]") {
    HostWorld world;
    const auto& [a, b] = std::tie(world.net.a, world.net.b);
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        CHECK(co_await enforcer.guard(world.spec(a)));
        CHECK(co_await enforcer.guard(world.spec(b, world.allow_name("good.test"))));
        CHECK_THAT(co_await world.ask(a, "PATCH", "/policy",
                                      R"([{"action":"allow","target":"good.test"}])"),
                   Contains("200 OK"));
        CHECK(co_await world.query(a, "good.test") == 0);
    });
    CHECK(world.reach(a, "192.0.2.2") == 0);
    CHECK(world.reach(a, "198.51.100.7") != 0);
    CHECK(world.reach(b, "198.51.100.7") != 0);
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        CHECK(world.reach(a, "198.51.100.7") != 0);
        CHECK(co_await enforcer.guard(world.spec(a)));
        CHECK(world.reach(a, "192.0.2.2") == 0);
        CHECK(world.reach(a, "198.51.100.7") != 0);
        CHECK_THAT(co_await world.ask(a, "GET", "/policy"), Contains("good.test"));
        // The other one is gone.
        enforcer.settle();
        CHECK(world.reach(b, "198.51.100.7") == 0);
    });
    world.net.host.run([&] {
        const auto table = rules::HostTable::open(world.net.options());
        REQUIRE(table);
        CHECK(table->unclaimed() == std::vector<std::string>{"egra"});
    });
}

TEST_CASE("a sandbox that cannot be guarded leaves nothing", "[egress]") {
    HostWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        const auto refused = [&](egress::GuardedSpec spec) -> Awaitable<std::string> {
            const std::string id = spec.id;
            const Status done = co_await enforcer.guard(std::move(spec));
            CHECK_FALSE(done);
            CHECK_FALSE(enforcer.guards(id));
            co_return done ? "" : done.error().message();
        };
        const std::string bad =
            R"({"egress":[{"action":"allow","target":"a.test"},{"target":"http://b"}]})";
        CHECK_THAT(co_await refused(world.spec(a, bad)), Contains("egress[1]"));
        egress::GuardedSpec spec = world.spec(a);
        spec.environment["OPENSANDBOX_EGRESS_POLICY_FILE"] = "/etc/policy.json";
        CHECK_THAT(co_await refused(spec), Contains("OPENSANDBOX_EGRESS_POLICY_FILE"));
        spec.environment = {{"OPENSANDBOX_EGRESS_TOKEN", "mine"}};
        CHECK_THAT(co_await refused(spec), Contains("OPENSANDBOX_EGRESS_TOKEN"));
        spec.environment.clear();
        spec.id = "../box";
        CHECK_THAT(co_await refused(spec), Contains("is no id"));
        spec = world.spec(a);
        spec.link = "much-too-long-a-name";
        CHECK_THAT(co_await refused(spec), Contains("1 to 15 bytes"));
        CHECK_FALSE(std::filesystem::exists(world.settings().state_directory / "box-egra"));
        CHECK(world.reach(a, "192.0.2.2") == 0);

        CHECK(co_await enforcer.guard(world.spec(a)));
        const Status again = co_await enforcer.guard(world.spec(a));
        REQUIRE_FALSE(again);
        CHECK(again.error().code() == ErrorCode::conflict);
        spec = world.spec(b);
        spec.link = a.link;
        CHECK_THAT(co_await refused(spec), Contains("guarded already"));
        CHECK(enforcer.guards("box-egra"));
    });
}

TEST_CASE("a sandbox from before that cannot be guarded again stays refused", "[egress]") {
    HostWorld world;
    const auto& a = world.net.a;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        CHECK(co_await enforcer.guard(world.spec(a)));
    });
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        CHECK_FALSE(co_await enforcer.guard(world.spec(a, "{")));
        enforcer.settle();
        CHECK(world.reach(a, "192.0.2.2") != 0);
        co_await enforcer.release("box-egra");
        CHECK(world.reach(a, "192.0.2.2") == 0);
    });
}

TEST_CASE("queries of sandboxes that are not guarded are not answered", "[egress]") {
    HostWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        const std::string allow_all = R"({"defaultAction":"allow"})";
        CHECK(co_await enforcer.guard(world.spec(a, allow_all)));
        const auto port = world.net.options().dns_port;
        const auto stray = bind_socket(b.place, b.v4, 0, SOCK_DGRAM);
        const SocketAddress proxy("10.77.0.1", port);
        const std::string query(
            "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04good\x04test"
            "\x00\x00\x01\x00\x01",
            27);
        CHECK(::sendto(stray.get(), query.data(), query.size(), 0, proxy.get(), proxy.size) == 27);
        // What came later is answered, that is not.
        CHECK(co_await world.query(a, "good.test") == 0);
        CHECK(co_await world.query(a, "other.test") == 0);
        char reply = 0;
        CHECK(::recv(stray.get(), &reply, 1, MSG_DONTWAIT) < 0);
    });
}

TEST_CASE("each sandbox is told of its own denials", "[egress]") {
    HostWorld world;
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& [a, b] = std::tie(world.net.a, world.net.b);
        CHECK(co_await enforcer.guard(world.spec(a)));
        CHECK(co_await enforcer.guard(world.spec(b)));
        CHECK(co_await world.query(a, "good.test") == kNoSuchName);
        CHECK(world.reach(a, "192.0.2.2") != 0);
        CHECK(co_await world.query(b, "other.test") == kNoSuchName);
        std::string told;
        for (int i = 0; i < 500 && told.find("192.0.2.2") == std::string::npos; ++i) {
            co_await net::sleep_for(10ms);
            told = co_await world.ask(a, "GET", "/policy/denials");
        }
        CHECK_THAT(told, Contains("good.test") && Contains("\"target\":\"192.0.2.2\"") &&
                             Contains("default: deny") && !Contains("other.test"));
        CHECK_THAT(co_await world.ask(b, "GET", "/policy/denials"),
                   Contains("other.test") && !Contains("good.test") && !Contains("192.0.2.2"));
    });
}

namespace {

/// What the next to connect sends, up to some text.
std::string heard_up_to(const Listener& listener, std::string_view text) {
    const UniqueFd peer = listener.accept();
    std::string heard;
    char piece[2048];
    while (heard.find(text) == std::string::npos) {
        const ssize_t size = ::recv(peer.get(), piece, sizeof(piece), 0);
        if (size <= 0) break;
        heard.append(piece, static_cast<std::size_t>(size));
    }
    return heard;
}

}  // namespace

TEST_CASE("a sandbox's webhook is told from the host, by names that the host resolves",
          "[egress]") {
    HostWorld world;
    world.names["hook.test"] = "192.0.2.2";
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        const auto& a = world.net.a;
        egress::GuardedSpec spec = world.spec(a);
        spec.environment["OPENSANDBOX_EGRESS_DENY_WEBHOOK"] = "http://hook.test:9/denied";
        CHECK(co_await enforcer.guard(spec));
        CHECK(co_await world.query(a, "evil.test") == kNoSuchName);
        auto told =
            std::async(std::launch::async, [&] { return heard_up_to(world.service, "evil.test"); });
        CHECK_THAT(co_await result_of(told),
                   Contains("POST /denied") && Contains("\"sandboxId\":\"box-egra\""));
    });
}

TEST_CASE("a webhook on this host is told when the operator names it, not when a request does",
          "[egress]") {
    HostWorld world;
    const Listener own(world.net.host, "127.0.0.1", 9099);
    const std::string variable = "OPENSANDBOX_EGRESS_DENY_WEBHOOK";
    world.adjust = [&](egress::EnforcerSettings& settings) {
        settings.sandbox_defaults[variable] = "http://127.0.0.1:9099/operators";
    };
    world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
        egress::GuardedSpec spec = world.spec(world.net.b);
        spec.environment[variable] = "http://127.0.0.1:9099/requests";
        CHECK(co_await enforcer.guard(spec));
        CHECK(co_await enforcer.guard(world.spec(world.net.a)));
        CHECK(co_await world.query(world.net.b, "first.test") == kNoSuchName);
        CHECK(co_await world.query(world.net.a, "second.test") == kNoSuchName);
        auto told = std::async(std::launch::async, [&] { return heard_up_to(own, "second.test"); });
        CHECK_THAT(co_await result_of(told),
                   Contains("POST /operators") && Contains("\"sandboxId\":\"box-egra\""));
    });
}
