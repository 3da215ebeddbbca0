#include "http/websocket_connection.hpp"
#include "support/http_fixture.hpp"
#include "unit/agent/agent_process.hpp"

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using http::WebSocketMessage;

namespace {

struct Heard {
    std::string target;
    bool token = false;
    int close_code = 0;
};

/// Sends back every message and notes how it was called.
Awaitable<void> echo(http::Exchange& exchange, Heard& heard) {
    heard.target = exchange.request().target;
    heard.token = exchange.request().fields.has("X-EXECD-ACCESS-TOKEN");
    auto socket = co_await http::accept_websocket(exchange);
    while (socket) {
        auto message = co_await (*socket)->receive();
        if (!message) co_return;
        if (message->kind == WebSocketMessage::Kind::close) {
            heard.close_code = message->code;
            co_return;
        }
        if (message->kind == WebSocketMessage::Kind::text) {
            co_await (*socket)->send_text(message->data);
        } else {
            co_await (*socket)->send_binary(message->data);
        }
    }
}

}  // namespace

TEST_CASE("the agent's proxy passes WebSockets to services of the sandbox", "[agent][proxy]") {
    AgentOptions options;
    options.access_token = "secret";
    AgentProcess agent(std::move(options));
    test_support::Loop loop;
    Heard heard;
    http::test::TestServer service(
        loop, [&heard](http::Exchange& exchange) { return echo(exchange, heard); });
    loop.run([&]() -> Awaitable<void> {
        http::Client client(loop.executor());
        http::Origin origin("127.0.0.1", agent.port());
        std::string target = "/proxy/" + std::to_string(service.port) + "/chat?room=1";
        auto refused = co_await http::connect_websocket(client, origin, target);
        CHECK_FALSE(refused.has_value());
        http::Fields token{{"X-EXECD-ACCESS-TOKEN", "secret"}};
        auto socket = co_await http::connect_websocket(client, origin, target, token);
        REQUIRE(socket.has_value());
        std::string large(1'000'000, 'x');
        for (const std::string& payload : {std::string("hello"), large}) {
            co_await (*socket)->send_text(payload);
            auto back = co_await (*socket)->receive();
            REQUIRE(back.has_value());
            CHECK((back->data == payload));
        }
        co_await (*socket)->close(4000, "bye");
        auto closed = co_await (*socket)->receive();
        REQUIRE(closed.has_value());
        CHECK(closed->code == 4000);
        CHECK(heard.target == "/chat?room=1");
        CHECK_FALSE(heard.token);
        CHECK(heard.close_code == 4000);
    });
}
