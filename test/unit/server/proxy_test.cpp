#include "unit/server/app_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using Catch::Contains;
using Catch::StartsWith;
using http::test::receive_until;
using http::test::ScriptedServer;
using http::test::send;
using http::test::talk;
using test_support::AppFixture;

namespace {

/// A sandbox whose agent answers one fixed text and remembers what it was asked.
struct ProxyFixture : AppFixture {
    explicit ProxyFixture(std::string answer)
        : agent(loop, [this, answer](net::Stream& stream, int) -> Awaitable<void> {
              seen = co_await receive_until(stream, "\r\n\r\n");
              co_await http::test::send(stream, answer);
          }) {
        runtime.agent = runtime::AgentAddress("127.0.0.1", agent.port);
        id = make();
        token = life->agent(id)->token;
    }

    /// Sends a raw request through the proxy and returns the raw answer.
    std::string raw(const std::string& request) {
        std::string answer;
        loop.run([&]() -> Awaitable<void> { answer = co_await talk(web->port, request); });
        return answer;
    }
    std::string fetch(const std::string& target, const std::string& fields = "") {
        return raw("GET " + target + " HTTP/1.1\r\nHost: public:8080\r\nConnection: close\r\n" +
                   fields + "\r\n");
    }
    [[nodiscard]] std::string path(const std::string& rest,
                                   const std::string& mount = "/v1") const {
        return mount + "/sandboxes/" + id + "/proxy/" + rest;
    }

    std::string seen;
    ScriptedServer agent;
    std::string id;
    std::string token;
};

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
constexpr const char* kHandshake =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

std::string handshake_to(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: h\r\n" + kHandshake + "\r\n";
}

/// The code of the close frame that ends `bytes`.
int close_code(const std::string& bytes) {
    auto at = bytes.find("\r\n\r\n");
    REQUIRE(at != std::string::npos);
    std::string frame = bytes.substr(at + 4);
    REQUIRE(frame.size() >= 4);
    REQUIRE(static_cast<unsigned char>(frame[0]) == 0x88);
    return static_cast<unsigned char>(frame[2]) * 256 + static_cast<unsigned char>(frame[3]);
}

}  // namespace

TEST_CASE("proxy: a port goes through the agent, raw path and query, with the agent's token") {
    ProxyFixture f(kOk);
    auto answer =
        f.fetch(f.path("8080/a%2Fb//c?x=%20+y"),
                "Cookie: c=1\r\nAuthorization: b\r\nX-Forwarded-For: 6.6.6.6\r\nX-Own: 1\r\n");
    REQUIRE_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
    REQUIRE_THAT(f.seen, StartsWith("GET /proxy/8080/a%2Fb//c?x=%20+y HTTP/1.1\r\n"));
    REQUIRE_THAT(f.seen, Contains("X-EXECD-ACCESS-TOKEN: " + f.token));
    REQUIRE_THAT(f.seen, Contains("X-Forwarded-Host: public:8080") &&
                             Contains("X-Forwarded-For: 127.0.0.1"));
    REQUIRE_THAT(f.seen, Contains("X-Own: 1") && Contains("\r\nHost: 127.0.0.1:8080\r\n"));
    REQUIRE_THAT(f.seen, !Contains("Cookie") && !Contains("Authorization") && !Contains("6.6.6.6"));
}

TEST_CASE("proxy: the agent itself needs the token or this server's key") {
    ProxyFixture f(kOk);
    f.fetch(f.path("44772/ping"));
    REQUIRE_THAT(f.seen, StartsWith("GET /ping HTTP/1.1\r\n") && !Contains("X-EXECD-ACCESS-TOKEN"));
    f.fetch(f.path("44772/ping"), "OPEN-SANDBOX-API-KEY: wrong\r\n");
    REQUIRE_THAT(f.seen, !Contains("X-EXECD-ACCESS-TOKEN") && !Contains("wrong"));
    f.fetch(f.path("44772/ping", ""), "OPEN-SANDBOX-API-KEY: secret\r\n");
    REQUIRE_THAT(f.seen, Contains("X-EXECD-ACCESS-TOKEN: " + f.token) && !Contains("secret"));
    f.fetch(f.path("44772/ping"), "X-EXECD-ACCESS-TOKEN: theirs\r\n");
    REQUIRE_THAT(f.seen, Contains("X-EXECD-ACCESS-TOKEN: theirs") && !Contains(f.token));
    // Not a way around: the number counts, not how it is written.
    f.fetch(f.path("0044772/ping"));
    REQUIRE_THAT(f.seen, StartsWith("GET /ping HTTP/1.1\r\n") && !Contains("X-EXECD-ACCESS-TOKEN"));
}

TEST_CASE("proxy: redirects stay behind it and repeated cookies survive") {
    ProxyFixture f(
        "HTTP/1.1 302 Found\r\nLocation: /login\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nServer: "
        "s\r\n"
        "X-Request-ID: theirs\r\nContent-Length: 0\r\n\r\n");
    auto answer = f.fetch(f.path("8080/x"), "X-Request-ID: mine\r\n");
    REQUIRE_THAT(answer, Contains("Location: " + f.path("8080/login") + "\r\n"));
    REQUIRE_THAT(answer, Contains("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"));
    REQUIRE_THAT(answer,
                 Contains("X-Request-ID: mine") && !Contains("theirs") && !Contains("Server:"));
    REQUIRE_THAT(f.seen, Contains("X-Request-ID: mine"));
    REQUIRE_THAT(f.fetch(f.path("8080/x", "")),
                 Contains("Location: " + f.path("8080/login", "") + "\r\n"));
}

TEST_CASE("proxy: an event stream comes through as it is sent") {
    AppFixture f;
    auto gate = std::make_shared<lifecycle::Latch>(f.loop.executor());
    ScriptedServer agent(f.loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream,
                      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
        co_await gate->wait();
        co_await send(stream, "3\r\ntwo\r\n0\r\n\r\n");
    });
    f.runtime.agent = runtime::AgentAddress("127.0.0.1", agent.port);
    std::string id = f.make();
    f.loop.run([&]() -> Awaitable<void> {
        auto stream = co_await http::test::dial(f.web->port);
        co_await send(*stream,
                      "GET /sandboxes/" + id +
                          "/proxy/44772/command HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        auto first = co_await receive_until(*stream, "one\r\n");
        CHECK_THAT(first, Contains("text/event-stream"));
        gate->open();
        auto rest = co_await http::test::receive_all(*stream);
        CHECK_THAT(rest, Contains("two"));
    });
}

TEST_CASE("proxy: request bodies are passed on") {
    AppFixture f;
    std::string seen;
    ScriptedServer agent(f.loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        seen = co_await receive_until(stream, "the end");
        co_await send(stream, kOk);
    });
    f.runtime.agent = runtime::AgentAddress("127.0.0.1", agent.port);
    std::string id = f.make();
    std::string body = std::string(20'000'000, 'x') + "the end";
    auto answer = f.send("POST", "/v1/sandboxes/" + id + "/proxy/44772/files/upload", body);
    REQUIRE(answer.status == 200);
    REQUIRE(seen.size() > body.size());
    REQUIRE_THAT(seen.substr(0, 2000), Contains("Content-Length: " + std::to_string(body.size())));
}

TEST_CASE("proxy: unknown sandboxes, bad ports and ended sandboxes fail at once") {
    ProxyFixture f(kOk);
    REQUIRE(f.get("/v1/sandboxes/none/proxy/80/").code() == "NATIVE::SANDBOX_NOT_FOUND");
    REQUIRE(f.get(f.path("99999/")).code() == "NATIVE::INVALID_PORT");
    REQUIRE(f.get(f.path("abc/")).status == 422);
    f.runtime.listener(f.id, runtime::Exit());
    f.until([&] { return f.status(f.id).state == model::SandboxState::terminated; });
    auto ended = f.get(f.path("44772/ping"));
    REQUIRE(ended.status == 502);
    REQUIRE(ended.code() == "BACKEND_CONNECTION_FAILED");
    REQUIRE_THAT(ended.body, Contains("Terminated"));
}

TEST_CASE("proxy: a refused and a garbled backend have their own codes") {
    AppFixture f;
    std::uint16_t nobody = 0;
    {
        auto listener = net::listen_tcp(f.loop.executor(), "127.0.0.1", 0);
        nobody = listener.value()->port();
    }
    f.runtime.agent = runtime::AgentAddress("127.0.0.1", nobody);
    std::string id = f.make();
    auto refused = f.get("/v1/sandboxes/" + id + "/proxy/44772/ping");
    REQUIRE(refused.status == 502);
    REQUIRE(refused.code() == "BACKEND_CONNECTION_FAILED");
    ScriptedServer garbage(f.loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, "no http at all\r\n\r\n");
    });
    f.runtime.agent = runtime::AgentAddress("127.0.0.1", garbage.port);
    auto answer = f.get("/v1/sandboxes/" + f.make() + "/proxy/44772/ping");
    REQUIRE(answer.status == 502);
    REQUIRE(answer.code() == "BACKEND_RESPONSE_FAILED");
}

TEST_CASE("proxy: a WebSocket is spliced both ways") {
    AppFixture f;
    std::string seen;
    ScriptedServer agent(f.loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        seen = co_await receive_until(stream, "\r\n\r\n");
        co_await send(
            stream,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
            "Sec-WebSocket-Protocol: chat\r\n\r\nhello");
        auto echoed = co_await receive_until(stream, "ping");
        co_await send(stream, "pong:" + echoed);
    });
    f.runtime.agent = runtime::AgentAddress("127.0.0.1", agent.port);
    std::string id = f.make();
    f.loop.run([&]() -> Awaitable<void> {
        auto stream = co_await http::test::dial(f.web->port);
        co_await send(*stream, "GET /v1/sandboxes/" + id +
                                   "/proxy/8080/ws HTTP/1.1\r\nHost: h\r\n" +
                                   "Sec-WebSocket-Protocol: chat\r\nOrigin: http://o\r\n" +
                                   kHandshake + "\r\n");
        auto head = co_await receive_until(*stream, "hello");
        CHECK_THAT(head, StartsWith("HTTP/1.1 101") && Contains("Sec-WebSocket-Protocol: chat"));
        co_await send(*stream, "ping");
        auto rest = co_await http::test::receive_all(*stream);
        CHECK(rest == "pong:ping");
    });
    REQUIRE_THAT(seen, StartsWith("GET /proxy/8080/ws ") && Contains("Origin: http://o"));
}

TEST_CASE("proxy: a WebSocket that cannot be is accepted and closed with a code") {
    ProxyFixture f("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    REQUIRE(close_code(f.raw(handshake_to("/v1/sandboxes/none/proxy/80/ws"))) == 1011);
    REQUIRE(close_code(f.raw(handshake_to(f.path("8080/ws")))) == 1008);
    f.runtime.listener(f.id, runtime::Exit());
    f.until([&] { return f.status(f.id).state == model::SandboxState::terminated; });
    REQUIRE(close_code(f.raw(handshake_to(f.path("8080/ws")))) == 1011);
}

TEST_CASE("proxy: half a WebSocket handshake is a bad request") {
    ProxyFixture f(kOk);
    REQUIRE_THAT(f.fetch(f.path("8080/ws"), "Upgrade: websocket\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_CASE("proxy: a failure behind the agent is told apart from a 502 of the service") {
    ProxyFixture nothing(
        "HTTP/1.1 502 Bad Gateway\r\nX-EXECD-PROXY-ERROR: unavailable\r\nContent-Length: "
        "2\r\n\r\nno");
    auto refused = nothing.get(nothing.path("8001/x"));
    REQUIRE(refused.status == 502);
    REQUIRE(refused.code() == "BACKEND_CONNECTION_FAILED");
    REQUIRE(close_code(nothing.raw(handshake_to(nothing.path("8001/ws")))) == 1011);
    ProxyFixture garbled(
        "HTTP/1.1 502 Bad Gateway\r\nX-EXECD-PROXY-ERROR: bad_gateway\r\nContent-Length: "
        "0\r\n\r\n");
    REQUIRE(garbled.get(garbled.path("8001/x")).code() == "BACKEND_RESPONSE_FAILED");
    ProxyFixture slow(
        "HTTP/1.1 502 Bad Gateway\r\nX-EXECD-PROXY-ERROR: timeout\r\nContent-Length: 0\r\n\r\n");
    auto late = slow.get(slow.path("8001/x"));
    REQUIRE(late.status == 504);
    REQUIRE(late.code() == "BACKEND_TIMEOUT");
    ProxyFixture own("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nown");
    REQUIRE(own.get(own.path("8001/x")).body == "own");
}
