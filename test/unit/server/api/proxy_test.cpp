#include "unit/server/api/app_fixture.hpp"

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
    "Connection: close, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

std::string handshake_to(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: h\r\n" + kHandshake + "\r\n";
}

/// The status of a raw answer.
std::string status_of(const std::string& bytes) {
    return bytes.substr(0, std::string("HTTP/1.1 nnn").size());
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
    auto gate = std::make_shared<net::Latch>(f.loop.executor());
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

TEST_CASE("proxy: a WebSocket is agreed to by the service or not at all") {
    ProxyFixture f("HTTP/1.1 403 Forbidden\r\nX-Why: own\r\nContent-Length: 2\r\n\r\nno");
    CHECK(status_of(f.raw(handshake_to("/v1/sandboxes/none/proxy/80/ws"))) == "HTTP/1.1 404");
    auto own = f.raw(handshake_to(f.path("8080/ws")));
    CHECK(status_of(own) == "HTTP/1.1 403");
    CHECK_THAT(own, Contains("X-Why: own\r\n") && Catch::EndsWith("no"));
    f.runtime.listener(f.id, runtime::Exit());
    f.until([&] { return f.status(f.id).state == model::SandboxState::terminated; });
    CHECK(status_of(f.raw(handshake_to(f.path("8080/ws")))) == "HTTP/1.1 502");
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
    REQUIRE(status_of(nothing.raw(handshake_to(nothing.path("8001/ws")))) == "HTTP/1.1 502");
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

TEST_CASE("proxy: nothing with effect beyond the answer passes, and pages get an opaque origin") {
    ProxyFixture f(
        "HTTP/1.1 200 OK\r\nService-Worker-Allowed: /\r\nClear-Site-Data: \"*\"\r\n"
        "Strict-Transport-Security: max-age=9\r\nAlt-Svc: h3=\":1\"\r\nNEL: {}\r\n"
        "Report-To: {}\r\nAccept-CH: DPR\r\nUse-As-Dictionary: match=\"/*\"\r\n"
        "Set-Cookie: a=1; Path=/\r\nWWW-Authenticate: Basic\r\nX-Own: kept\r\n"
        "Content-Security-Policy: default-src 'self'\r\nContent-Length: 4\r\n\r\npage");
    const std::string policy =
        "Content-Security-Policy: sandbox allow-scripts allow-forms allow-popups allow-modals "
        "allow-downloads\r\n";
    // Node's fetch sends Sec-Fetch-Mode.
    auto program = f.fetch(f.path("8080/x"), "User-Agent: node\r\nSec-Fetch-Mode: cors\r\n");
    for (const char* dropped : {"Service-Worker-Allowed", "Clear-Site-Data", "Alt-Svc",
                                "NEL:", "Strict-Transport", "Report-To", "Accept-CH", "Use-As-"}) {
        INFO(dropped);
        CHECK_THAT(program, !Contains(dropped));
    }
    CHECK_THAT(program, Contains(policy) && Contains("X-Own: kept\r\n") &&
                            Contains("Content-Security-Policy: default-src 'self'\r\n") &&
                            Contains("Set-Cookie: a=1; Path=/\r\n") &&
                            Contains("WWW-Authenticate: Basic\r\n") && Catch::EndsWith("page"));
    for (const char* sign :
         {"User-Agent: Mozilla/5.0\r\n", "Origin: null\r\n", "Sec-Fetch-Site: none\r\n"}) {
        INFO(sign);
        auto browser = f.fetch(f.path("8080/x"), sign);
        CHECK_THAT(browser, Contains(policy) && !Contains("Set-Cookie") &&
                                !Contains("WWW-Authenticate") && Contains("X-Own: kept"));
    }
}

TEST_CASE("proxy: service workers are refused before the sandbox is asked") {
    ProxyFixture f(kOk);
    for (const char* sign : {"Service-Worker: script\r\n", "Sec-Fetch-Dest: serviceworker\r\n"}) {
        auto answer = f.fetch(f.path("8080/sw.js"), sign);
        CHECK_THAT(answer, StartsWith("HTTP/1.1 403") && Contains("publish the port"));
    }
    CHECK(f.seen.empty());
}

TEST_CASE("proxy: requests without a key have room of their own, and one sandbox a part of it") {
    ProxyFixture f(kOk);
    auto gate = std::make_shared<net::Latch>(f.loop.executor());
    ScriptedServer slow(f.loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await gate->wait();
        co_await send(stream, kOk);
    });
    f.runtime.agent = runtime::AgentAddress("127.0.0.1", slow.port);
    std::string one = f.make();
    std::string other = f.make();
    server::RoomLimits limits;
    limits.control = limits.proxied = 2;
    limits.unauthorized = 3;
    limits.per_sandbox = 2;
    f.rooms->set_limits(limits);
    auto target = [](const std::string& id) { return "/v1/sandboxes/" + id + "/proxy/44772/x"; };
    int answered = 0;
    auto hang = [&](std::string id, std::string fields) -> Awaitable<void> {
        auto text = co_await talk(f.web->port, "GET " + target(id) +
                                                   " HTTP/1.1\r\nHost: h\r\nConnection: "
                                                   "close\r\n" +
                                                   fields + "\r\n");
        CHECK_THAT(text, Contains(" 200 "));
        ++answered;
    };
    for (int i = 0; i < 2; ++i)
        net::spawn(f.loop.executor(), hang(one, ""), "hanging");
    f.until([&] { return slow.connections == 2; });
    CHECK_THAT(f.fetch(target(one)), StartsWith("HTTP/1.1 503"));
    net::spawn(f.loop.executor(), hang(other, ""), "hanging");
    f.until([&] { return slow.connections == 3; });
    CHECK_THAT(f.fetch(target(other)), StartsWith("HTTP/1.1 503"));
    // Who has a key, or the sandbox's own token, does not notice.
    CHECK(f.get("/v1/sandboxes").status == 200);
    CHECK(f.send("GET", "/health", "", {{"X-No-Key", "1"}}).status == 200);
    net::spawn(f.loop.executor(), hang(one, "OPEN-SANDBOX-API-KEY: secret\r\n"), "hanging");
    net::spawn(f.loop.executor(),
               hang(one, "X-EXECD-ACCESS-TOKEN: " + f.life->agent(one)->token + "\r\n"), "hanging");
    f.until([&] { return slow.connections == 5; });
    CHECK(f.get(target(one)).status == 503);
    CHECK(f.get("/v1/sandboxes").status == 200);
    gate->open();
    f.until([&] { return answered == 5; });
    CHECK_THAT(f.fetch(target(one)), StartsWith("HTTP/1.1 200"));
}
