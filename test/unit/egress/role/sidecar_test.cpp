#include "sidecar_world.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::test;
using namespace opensandbox::egress::test;
using namespace std::chrono_literals;
using Catch::Contains;

TEST_CASE("a sidecar enforces its policy once it is healthy", "[egress]") {
    const SidecarWorld world;
    CHECK(world.reach() == 0);
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        const auto port = sidecar.port();
        CHECK_THAT(co_await ask(port, "GET", "/healthz"), Contains("200 OK"));
        CHECK(world.reach() != 0);
        const std::string rule = R"([{"action":"allow","target":"192.0.2.2"}])";
        CHECK_THAT(co_await ask(port, "PATCH", "/policy", rule), Contains("200 OK"));
        CHECK(world.reach() == 0);
        CHECK_THAT(co_await ask(port, "DELETE", "/policy", R"(["192.0.2.2"])"), Contains("200 OK"));
        CHECK(world.reach() != 0);
    });
}

TEST_CASE("a sidecar tells of names and addresses that it denied", "[egress]") {
    const SidecarWorld world;
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        CHECK(co_await query("evil") == 3);
        CHECK(world.reach() != 0);
        std::string told;
        for (int i = 0; i < 500 && told.find("192.0.2.2") == std::string::npos; ++i) {
            co_await net::sleep_for(10ms);
            told = co_await ask(sidecar.port(), "GET", "/policy/denials");
        }
        CHECK_THAT(told, Contains("evil.test") && Contains("\"target\":\"192.0.2.2\"") &&
                             Contains("default: deny"));
        const std::string metrics = co_await ask(sidecar.port(), "GET", "/metrics");
        CHECK_THAT(metrics, Contains("egress_policy_denied_total{kind=\"name\"} 1"));
    });
}

TEST_CASE("what is refused stays refused without the sidecar, and what was said is kept",
          "[egress]") {
    const SidecarWorld world;
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        const std::string rule = R"([{"action":"allow","target":"203.0.113.7"}])";
        CHECK_THAT(co_await ask(sidecar.port(), "PATCH", "/policy", rule), Contains("200 OK"));
    });
    CHECK(world.reach() != 0);
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        CHECK_THAT(co_await ask(sidecar.port(), "GET", "/policy"), Contains("203.0.113.7"));
        CHECK(world.reach() != 0);
    });
}

TEST_CASE("an allowed name opens its address for the ports that it was granted", "[egress]") {
    const SidecarWorld world;
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        auto resolver = co_await start_resolver();
        const auto port = sidecar.port();
        const std::string other = R"([{"action":"allow","target":"good.test:10"}])";
        CHECK_THAT(co_await ask(port, "PATCH", "/policy", other), Contains("200 OK"));
        CHECK(co_await query("good") == 0);
        CHECK(world.reach() != 0);
        const std::string right = R"([{"action":"allow","target":"good.test:9"}])";
        CHECK_THAT(co_await ask(port, "PATCH", "/policy", right), Contains("200 OK"));
        CHECK(co_await query("good") == 0);
        CHECK(world.reach() == 0);
        // For a change elsewhere it need not be asked for again.
        const std::string more = R"([{"action":"allow","target":"more.test"}])";
        CHECK_THAT(co_await ask(port, "PATCH", "/policy", more), Contains("200 OK"));
        CHECK(world.reach() == 0);
        CHECK_THAT(co_await ask(port, "DELETE", "/policy", R"(["good.test:9"])"),
                   Contains("200 OK"));
        CHECK(world.reach() != 0);
        resolver->close();
    });
}

TEST_CASE("a sidecar that intercepts takes credentials", "[egress]") {
    SidecarWorld world;
    world.adjust = [](SidecarSettings& settings) {
        settings.options.intercept = true;
        settings.options.policy_file.clear();
        settings.options.rules = R"({"egress":[{"action":"allow","target":"api.test.com"}]})";
    };
    const std::string vault =
        R"({"credentials":[{"name":"key","source":{"type":"inline","value":"s3cret-value"}}],)"
        R"("bindings":[{"name":"api","match":{"hosts":["api.test.com"]},)"
        R"("auth":{"type":"bearer","credential":"key"}}]})";
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        CHECK(std::filesystem::file_size(world.directory.path / "shared" / "ca.pem") > 100);
        CHECK_THAT(co_await ask(sidecar.port(), "GET", "/healthz"), Contains("200 OK"));
        CHECK_THAT(co_await ask(sidecar.port(), "POST", "/credential-vault", vault),
                   Contains("412"));
    });
    world.adjust = [before = world.adjust](SidecarSettings& settings) {
        before(settings);
        settings.options.token = "t";
    };
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        const std::string bytes =
            "POST /credential-vault HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
            "OPENSANDBOX-EGRESS-AUTH: t\r\nContent-Length: " +
            std::to_string(vault.size()) + "\r\n\r\n" + vault;
        CHECK_THAT(co_await http::test::talk(sidecar.port(), bytes), Contains("201 Created"));
    });
}

TEST_CASE("a webhook is reached where the sandbox reaches nothing", "[egress]") {
    SidecarWorld world;
    world.adjust = [](SidecarSettings& settings) {
        settings.options.deny_webhook = "http://hook.test:" + std::to_string(kPort) + "/denied";
    };
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        auto resolver = co_await start_resolver();
        CHECK(co_await query("evil") == 3);
        // The listener outside has a connection though the policy allows none.
        auto met = std::async(std::launch::async, [&] { return world.listener.accept(); });
        while (met.wait_for(0s) != std::future_status::ready)
            co_await net::sleep_for(10ms);
        CHECK(met.get());
        CHECK_THAT(co_await ask(sidecar.port(), "GET", "/policy"), Contains("deny_all"));
        resolver->close();
    });
}

TEST_CASE("an intercepted request gets its credential, and its answer is cleaned of it",
          "[egress]") {
    SidecarWorld world;
    world.adjust = [](SidecarSettings& settings) {
        settings.options.intercept = true;
        settings.options.token = "t";
        settings.options.rules = R"({"egress":[{"action":"allow","target":"good.test"}]})";
    };
    const Listener server(world.topology.outside, "192.0.2.2", 80);
    const std::string vault =
        R"({"credentials":[{"name":"key","source":{"value":"s3cret-value"}}],)"
        R"("bindings":[{"name":"api","match":{"hosts":["good.test"],"schemes":["http"],)"
        R"("ports":[80]},"auth":{"type":"bearer","credential":"key"}}]})";
    world.with_sidecar([&](Sidecar& sidecar) -> Awaitable<void> {
        auto resolver = co_await start_resolver();
        const std::string create =
            "POST /credential-vault HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
            "OPENSANDBOX-EGRESS-AUTH: t\r\nContent-Length: " +
            std::to_string(vault.size()) + "\r\n\r\n" + vault;
        CHECK_THAT(co_await http::test::talk(sidecar.port(), create), Contains("201 Created"));
        CHECK(co_await query("good") == 0);

        auto seen = std::async(std::launch::async, [&] {
            const UniqueFd peer = server.accept();
            std::string request(4096, '\0');
            request.resize(static_cast<std::size_t>(
                std::max<ssize_t>(0, ::read(peer.get(), request.data(), request.size()))));
            const std::string answer =
                "HTTP/1.1 200 OK\r\nX-Echo: s3cret-value\r\nContent-Length: 2\r\n\r\nhi";
            if (::write(peer.get(), answer.data(), answer.size()) < 0) return std::string();
            return request;
        });
        auto get = [](std::string host) -> Awaitable<std::string> {
            auto stream = co_await net::connect_tcp("192.0.2.2", 80, 5s);
            if (!stream) co_return stream.error().message();
            const std::string request =
                "GET /x HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
            if (!co_await net::write_all(**stream, request)) co_return "not sent";
            co_return co_await http::test::receive_all(**stream);
        };
        // Another name at the same address goes nowhere.
        CHECK_THAT(co_await get("evil.test"), Contains("403"));
        const std::string answer = co_await get("good.test");
        CHECK_THAT(answer, Contains("200 OK") && Contains("hi") && Contains("[REDACTED]") &&
                               !Contains("s3cret"));
        while (seen.wait_for(0s) != std::future_status::ready)
            co_await net::sleep_for(10ms);
        CHECK_THAT(seen.get(),
                   Contains("GET /x HTTP/1.1") && Contains("Authorization: Bearer s3cret-value"));
        resolver->close();
    });
}
