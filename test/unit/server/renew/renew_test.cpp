#include "server/renew/intent_queue.hpp"
#include "support/catch_result.hpp"
#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;
using Catch::Contains;
using http::test::ScriptedServer;
using test_support::AppFixture;

namespace {

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
constexpr const char* kRenewing = R"(,"extensions":{"access.renew.extend.seconds":"3600"})";

/// A server that renews on access, with an agent that answers everything.
struct RenewFixture : AppFixture {
    using Made = std::shared_ptr<AccessRenewer>;

    explicit RenewFixture(std::chrono::seconds min_interval = std::chrono::seconds(0),
                          std::shared_ptr<Made> made = std::make_shared<Made>())
        : AppFixture("secret",
                     [this, min_interval, made](Services& services) {
                         *made = std::make_shared<AccessRenewer>(
                             loop.executor(), services.lifecycle_owner, min_interval);
                         services.renewer = *made;
                     }),
          renewer(*made),
          agent(loop, [](net::Stream& stream, int) -> Awaitable<void> {
              while (true) {
                  auto request = co_await http::test::receive_until(stream, "\r\n\r\n");
                  if (request.empty()) co_return;
                  co_await http::test::send(stream, kOk);
              }
          }) {
        runtime.agent = runtime::AgentAddress("127.0.0.1", agent.port);
    }

    [[nodiscard]] Timestamp expiry(const std::string& id) const {
        return *life->index().find(id)->record.sandbox.expires_at;
    }
    void use(const std::string& id, http::Fields fields = {}) {
        auto answer = send("GET", "/v1/sandboxes/" + id + "/proxy/8000/", "", std::move(fields));
        REQUIRE(answer.status == 200);
    }
    /// Waits until everything that was started has ended.
    void settle() {
        loop.run(
            []() -> Awaitable<void> { co_await net::sleep_for(std::chrono::milliseconds(30)); });
    }

    std::shared_ptr<AccessRenewer> renewer;
    ScriptedServer agent;
};

std::string intent(const std::string& id, Timestamp at) {
    return R"({"sandbox_id":")" + id + R"(","observed_at":")" + to_rfc3339(at) +
           R"(","port":8000,"request_uri":"/x"})";
}

}  // namespace

TEST_CASE("renew intents: the payload is checked, old ones are dropped") {
    Timestamp at = now();
    auto good = parse_renew_intent(
        R"({"sandbox_id":"s","observed_at":"2026-01-01T00:00:00.123456789+01:00","namespace":"n"})",
        *parse_rfc3339("2025-12-31T23:04:00Z"));
    REQUIRE(good.has_value());
    CHECK(good->sandbox_id == "s");
    CHECK(good->tenant == "n");
    CHECK(parse_renew_intent(intent("s", at - std::chrono::seconds(299)), at));
    CHECK_FALSE(parse_renew_intent(intent("s", at - std::chrono::seconds(301)), at));
    for (const char* bad :
         {"", "x", "[]", "{}", R"({"sandbox_id":"s"})", R"({"sandbox_id":1,"observed_at":"x"})",
          R"({"sandbox_id":"s","observed_at":"yesterday"})",
          R"({"sandbox_id":"","observed_at":"2999-01-01T00:00:00Z"})",
          R"({"sandbox_id":"s","observed_at":"2999-01-01T00:00:00Z","port":0})",
          R"({"sandbox_id":"s","observed_at":"2999-01-01T00:00:00Z","port":"80"})",
          R"({"sandbox_id":"s","observed_at":"2999-01-01T00:00:00Z","namespace":1})"}) {
        INFO(bad);
        CHECK_FALSE(parse_renew_intent(bad, at));
    }
    CHECK_FALSE(parse_renew_intent(intent(std::string(100'000, 's'), at), at));
}

TEST_CASE("renewal on access: a request through the proxy lets a sandbox live longer") {
    RenewFixture f;
    std::string id = f.make(kRenewing);
    std::string other = f.make();
    Timestamp before = f.expiry(id);
    Timestamp other_before = f.expiry(other);
    f.use(other);
    f.use(id);
    f.until([&] { return f.expiry(id) >= before + std::chrono::seconds(2990); });
    f.settle();
    CHECK(f.expiry(other) == other_before);
}

TEST_CASE("renewal on access: not when the request says so, and not beyond the interval") {
    RenewFixture f(std::chrono::seconds(1000));
    std::string id = f.make(kRenewing);
    Timestamp before = f.expiry(id);
    http::Fields skip;
    skip.add("OpenSandbox-Access-Renew", "skip");
    f.use(id, skip);
    f.settle();
    CHECK(f.expiry(id) == before);
    http::Fields other;
    other.add("OpenSandbox-Access-Renew", "Skip");
    f.use(id, other);
    f.until([&] { return f.expiry(id) > before; });
    Timestamp renewed = f.expiry(id);
    f.settle();
    f.use(id);
    f.settle();
    CHECK(f.expiry(id) == renewed);
    // What a gateway reports is not held to it.
    f.loop.run([&]() -> Awaitable<void> { co_await f.renewer->reported(id, ""); });
    CHECK(f.expiry(id) > renewed);
}

TEST_CASE("renewal on access: a longer life stays, and so does what must not be renewed") {
    RenewFixture f;
    std::string id = f.make(kRenewing);
    Timestamp far = now() + std::chrono::hours(100);
    f.loop.run([&]() -> Awaitable<void> {
        auto renewed = co_await f.life->renew(id, far);
        CHECK(renewed);
        co_await f.renewer->reported(id, "");
        co_await f.renewer->reported("none", "");
    });
    CHECK(f.expiry(id) == far);
}

TEST_CASE("renewal on access: a WebSocket counts when it connects") {
    RenewFixture f;
    std::string id = f.make(kRenewing);
    Timestamp before = f.expiry(id);
    f.loop.run([&]() -> Awaitable<void> {
        co_await http::test::talk(
            f.web->port, "GET /v1/sandboxes/" + id +
                             "/proxy/8000/ HTTP/1.1\r\nHost: h\r\nConnection: close, Upgrade\r\n"
                             "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    });
    f.until([&] { return f.expiry(id) > before; });
    CHECK(f.expiry(id) > before);
}

TEST_CASE("renewal queue: intents are taken off the list, garbage is passed over") {
    RenewFixture f;
    std::string id = f.make(kRenewing);
    Timestamp before = f.expiry(id);
    std::string said;
    int pops = 0;
    ScriptedServer redis(f.loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        while (true) {
            auto command = co_await http::test::receive_until(stream, "\r\n");
            if (command.empty()) co_return;
            said += command;
            if (command.find("BRPOP") == std::string::npos) {
                co_await http::test::send(stream, "+OK\r\n");
                continue;
            }
            std::string payload = ++pops == 1 ? "garbage" : intent(id, now());
            if (pops > 2) {
                co_await http::test::send(stream, "*-1\r\n");
                co_await net::sleep_for(std::chrono::milliseconds(5));
                continue;
            }
            co_await http::test::send(
                stream,
                "*2\r\n$1\r\nq\r\n$" + std::to_string(payload.size()) + "\r\n" + payload + "\r\n");
        }
    });
    RenewConfig config;
    config.redis_queue_key = "q";
    config.redis_consumer_concurrency = 1;
    auto address =
        redis::parse_url("redis://u:p@127.0.0.1:" + std::to_string(redis.port) + "/2").value();
    auto queue = std::make_shared<IntentQueue>(f.loop.executor(), f.renewer, address, config);
    queue->start();
    f.until([&] { return f.expiry(id) > before && pops > 3; });
    CHECK_THAT(said, Contains("AUTH\r\n$1\r\nu\r\n$1\r\np") && Contains("SELECT\r\n$1\r\n2") &&
                         Contains("BRPOP\r\n$1\r\nq\r\n$1\r\n5"));
    queue->stop();
    f.settle();
}

TEST_CASE("renewal queue: a server that is lost is found again") {
    RenewFixture f;
    std::string id = f.make(kRenewing);
    Timestamp before = f.expiry(id);
    ScriptedServer redis(f.loop, [&](net::Stream& stream, int number) -> Awaitable<void> {
        if (number == 1) co_return;  // gone at once
        while (true) {
            auto command = co_await http::test::receive_until(stream, "\r\n");
            if (command.empty()) co_return;
            bool pop = command.find("BRPOP") != std::string::npos;
            std::string payload = intent(id, now());
            co_await http::test::send(stream, pop ? "*2\r\n$1\r\nq\r\n$" +
                                                        std::to_string(payload.size()) + "\r\n" +
                                                        payload + "\r\n"
                                                  : std::string("+PONG\r\n"));
            if (pop) co_await net::sleep_for(std::chrono::milliseconds(5));
        }
    });
    RenewConfig config;
    config.redis_consumer_concurrency = 1;
    auto address = redis::parse_url("redis://127.0.0.1:" + std::to_string(redis.port)).value();
    auto queue = std::make_shared<IntentQueue>(f.loop.executor(), f.renewer, address, config);
    queue->start();
    f.until([&] { return f.expiry(id) > before; });
    CHECK(redis.connections >= 2);
    queue->stop();
    f.settle();
}
