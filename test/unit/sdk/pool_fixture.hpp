#pragma once

#include "opensandbox/pool.hpp"
#include "support/http_fixture.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <string>

namespace opensandbox::sdk::test {

using opensandbox::http::test::Loop;
using opensandbox::http::test::TestServer;
using namespace std::chrono_literals;

/// A lifecycle server and the agents of its sandboxes: as much as a pool asks for.
class FakeCloud {
  public:
    explicit FakeCloud(Loop& loop)
        : loop_(loop),
          server_(loop, [this](http::Exchange& exchange) { return serve(exchange); }) {}

    sdk::Connection connect() {
        sdk::ConnectionConfig config;
        config.domain = "127.0.0.1:" + std::to_string(server_.port);
        config.retry = sdk::RetryPolicy::none();
        auto connection = sdk::Connection::open(loop_.executor(), config);
        REQUIRE(connection.has_value());
        return *connection;
    }

    std::set<std::string> alive;
    std::set<std::string> silent;  ///< alive, but their agents do not answer
    std::map<std::string, int> renewed;
    std::size_t created = 0;
    std::size_t deleted = 0;
    bool refuses = false;                   ///< to create
    std::chrono::milliseconds slowness{0};  ///< of creates
    std::string last_create;

  private:
    Awaitable<void> serve(http::Exchange& exchange) {
        const std::string method = exchange.request().method;
        const std::string path(exchange.request().path());
        auto body = co_await http::read_all(exchange.body(), 1 << 20);
        if (method == "POST" && path == "/v1/sandboxes") {
            last_create = body ? *body : "";
            if (slowness.count() > 0) co_await net::sleep_for(slowness);
        }
        auto response = answer(method, path);
        co_await exchange.respond(std::move(response));
    }

    http::Response answer(const std::string& method, const std::string& path) {
        if (method == "POST" && path == "/v1/sandboxes") return create();
        const bool agent = path.starts_with("/agent/");
        const std::string rest = path.substr(agent ? 7 : std::string("/v1/sandboxes/").size());
        const std::string id = rest.substr(0, rest.find('/'));
        if (!alive.contains(id))
            return http::json_response(404, R"({"code":"X","message":"gone"})");
        if (agent) return http::Response(silent.contains(id) ? 502 : 200);
        if (method == "DELETE") {
            alive.erase(id);
            ++deleted;
            return http::Response(204);
        }
        if (rest.ends_with("/renew-expiration")) {
            ++renewed[id];
            return http::json_response(200, R"({"expiresAt":"2030-01-01T00:00:00Z"})");
        }
        return http::json_response(
            200,
            R"({"endpoint":"127.0.0.1:)" + std::to_string(server_.port) + "/agent/" + id + R"("})");
    }

    http::Response create() {
        if (refuses) return http::json_response(500, R"({"code":"X","message":"out of order"})");
        const std::string id = "s" + std::to_string(++created);
        alive.insert(id);
        return http::json_response(202, R"({"id":")" + id + R"("})");
    }

    Loop& loop_;
    TestServer server_;
};

/// Waits until the condition holds; the loop's own limit ends a test that waits in vain.
template <class Condition>
Awaitable<void> until(Condition condition) {
    while (!condition())
        co_await net::sleep_for(2ms);
}

inline sdk::PoolOptions quick_options(std::size_t idle, std::shared_ptr<sdk::PoolStore> store) {
    sdk::PoolOptions options("pool", sdk::CreateOptions("host"), idle);
    options.store = std::move(store);
    options.warmup_creates_per_second = 1000;
    options.reconcile_interval = 5ms;
    options.warmup_ready_timeout = 200ms;
    options.acquire_ready_timeout = 50ms;
    options.first_backoff = 40ms;
    options.longest_backoff = 80ms;
    options.drain_timeout = 5s;
    return options;
}

inline sdk::SandboxPool open_pool(FakeCloud& cloud, sdk::PoolOptions options) {
    auto pool = sdk::SandboxPool::open(cloud.connect(), std::move(options));
    REQUIRE(pool.has_value());
    return *pool;
}

/// Waits until so many sandboxes are idle.
inline Awaitable<void> filled(sdk::SandboxPool& pool, std::size_t count) {
    while (true) {
        auto shot = co_await pool.snapshot();
        REQUIRE(shot.has_value());
        if (shot->idle_count == count && shot->warming == 0) co_return;
        co_await net::sleep_for(2ms);
    }
}

}  // namespace opensandbox::sdk::test
