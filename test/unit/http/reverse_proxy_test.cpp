#include "http/reverse_proxy.hpp"

#include "support/http_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::http;
using namespace opensandbox::http::test;
using namespace std::chrono_literals;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

/// A proxy in front of a port; passes targets on as they are.
struct Proxy {
    Proxy(Loop& loop, std::uint16_t backend)
        : client(loop.executor()),
          server(loop, [this, backend](Exchange& exchange) -> Awaitable<void> {
              Forwarding forwarding;
              forwarding.origin = Origin("127.0.0.1", backend);
              forwarding.target = exchange.request().target;
              forwarding.edit_request = [](Fields& fields) {
                  fields.add("X-Forwarded-Proto", "http");
              };
              forwarding.edit_response = [](ResponseHead& head) { head.fields.erase("Server"); };
              co_await forward(exchange, client, std::move(forwarding));
              ++done;
          }) {}
    Client client;
    TestServer server;
    int done = 0;
};

constexpr std::string_view kGetClose = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
constexpr std::string_view kWebsocket =
    "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

std::uint16_t unused_port(Loop& loop) {
    auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
    REQUIRE(listener.has_value());
    return (*listener)->port();
}

}  // namespace

TEST_CASE("requests pass with raw target and without hop-by-hop fields", "[http][proxy]") {
    Loop loop;
    std::string seen;
    ScriptedServer backend(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        seen = co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok");
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(
            proxy.server.port,
            "GET /a%2Fb//c?x=%20+y HTTP/1.1\r\nHost: original\r\nConnection: close, X-Private\r\n"
            "X-Private: 1\r\nX-Kept: 1\r\nX-Kept: 2\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
            "Proxy-Authorization: s\r\nTrailer: t\r\nUpgrade: h2c\r\n\r\n");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 201 Created\r\n"));
        CHECK_THAT(answer, EndsWith("ok"));
    });
    CHECK(seen ==
          "GET /a%2Fb//c?x=%20+y HTTP/1.1\r\nHost: original\r\nX-Kept: 1\r\nX-Kept: 2\r\n"
          "X-Forwarded-Proto: http\r\n\r\n");
}

TEST_CASE("responses pass with repeated fields and without hop-by-hop ones", "[http][proxy]") {
    Loop loop;
    ScriptedServer backend(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream,
                      "HTTP/1.1 302 Found\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nServer: s\r\n"
                      "Date: then\r\nLocation: /x\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
                      "Proxy-Authenticate: p\r\nContent-Encoding: gzip\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(proxy.server.port, kGetClose);
        CHECK_THAT(answer,
                   StartsWith("HTTP/1.1 302 Found\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"));
        CHECK_THAT(answer, Contains("Location: /x\r\n"));
        CHECK_THAT(answer, Contains("Content-Encoding: gzip\r\n"));
        CHECK(count_of(answer, "Date: ") == 1);
        CHECK_THAT(answer, Contains("Date: then\r\n"));
        CHECK_THAT(answer, !Contains("X-Hop"));
        CHECK_THAT(answer, !Contains("Proxy-Authenticate"));
        CHECK_THAT(answer, !Contains("Server:"));
        CHECK_THAT(answer, EndsWith("3\r\nabc\r\n0\r\n\r\n"));
    });
}

TEST_CASE("event streams pass at once and the client's end reaches the backend", "[http][proxy]") {
    Loop loop;
    net::Event next(loop.executor());
    net::Event gone(loop.executor());
    TestServer backend(loop, [&](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(200);
        co_await exchange.start(std::move(head));
        co_await exchange.write("data: 1\n\n");
        co_await next.wait();
        co_await exchange.write("data: 2\n\n");
        co_await exchange.client_gone();
        gone.notify();
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(proxy.server.port);
        co_await send(*stream, kGetClose);
        auto first = co_await receive_until(*stream, "data: 1\n\n\r\n");
        CHECK_THAT(first, Contains("data: 1\n\n"));
        next.notify();
        auto second = co_await receive_until(*stream, "data: 2\n\n\r\n");
        CHECK_THAT(second, Contains("data: 2\n\n"));
        stream.reset();
        bool noticed = co_await gone.wait_for(10s);
        CHECK(noticed);
    });
}

TEST_CASE("a client that leaves before the response ends the backend's request", "[http][proxy]") {
    Loop loop;
    net::Event gone(loop.executor());
    net::Event arrived(loop.executor());
    TestServer backend(loop, [&](Exchange& exchange) -> Awaitable<void> {
        auto body = co_await read_all(exchange.body(), 100);
        arrived.notify();
        co_await exchange.client_gone();
        gone.notify();
    });
    Proxy proxy(loop, backend.port);
    auto request = GENERATE(as<std::string>(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
                            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(proxy.server.port);
        co_await send(*stream, request);
        co_await arrived.wait();
        stream.reset();
        bool noticed = co_await gone.wait_for(10s);
        CHECK(noticed);
        while (proxy.done == 0)
            co_await net::sleep_for(1ms);
    });
}

TEST_CASE("a client that leaves inside its body breaks the backend's request off",
          "[http][proxy]") {
    Loop loop;
    std::optional<Error> failure;
    net::Event ended(loop.executor());
    TestServer backend(loop, [&](Exchange& exchange) -> Awaitable<void> {
        auto body = co_await read_all(exchange.body(), 1000);
        if (!body) failure = body.error();
        ended.notify();
    });
    Proxy proxy(loop, backend.port);
    auto framing = GENERATE(as<std::string>(), "Content-Length: 100\r\n\r\nhalf",
                            "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(proxy.server.port);
        co_await send(*stream, "POST / HTTP/1.1\r\nHost: h\r\n" + framing);
        co_await net::sleep_for(5ms);
        stream.reset();
        bool noticed = co_await ended.wait_for(10s);
        REQUIRE(noticed);
        CHECK(failure);
    });
}

TEST_CASE("large bodies stream through in both directions at once", "[http][proxy]") {
    Loop loop;
    TestServer backend(loop, [](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(200);
        co_await exchange.start(std::move(head));
        std::string piece(50'000, '\0');
        while (true) {
            auto count = co_await exchange.body().read_some(piece);
            if (!count) co_return;
            if (*count == 0) break;
            co_await exchange.write(std::string_view(piece).substr(0, *count));
        }
        co_await exchange.finish();
    });
    Proxy proxy(loop, backend.port);
    auto chunked = GENERATE(true, false);
    std::string body;
    for (unsigned i = 0; i < 3'000'000; ++i)
        body += static_cast<char>((i * 7919) >> 6);
    struct Body final : BodyReader {
        Body(const std::string& t, bool c) : text(t), chunked(c) {}
        Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
            std::size_t count =
                text.copy(into.data(), std::min<std::size_t>(into.size(), 9999), at);
            at += count;
            co_return count;
        }
        std::optional<std::uint64_t> content_length() const override {
            if (chunked) return std::nullopt;
            return text.size();
        }
        const std::string& text;
        bool chunked;
        std::size_t at = 0;
    };
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        Body reader(body, chunked);
        ClientRequest request("POST", "/");
        request.stream = &reader;
        request.full_duplex = true;
        auto response =
            co_await client.send(Origin("127.0.0.1", proxy.server.port), std::move(request));
        REQUIRE(response.has_value());
        auto echoed = co_await read_all((*response)->body(), 10'000'000);
        REQUIRE(echoed.has_value());
        CHECK(*echoed == body);
        co_await (*response)->stop_sending();
    });
}

TEST_CASE("losing the backend in mid-body cuts the client's connection", "[http][proxy]") {
    Loop loop;
    auto framing = GENERATE(as<std::string>(), "Content-Length: 9\r\n\r\nabc",
                            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    ScriptedServer backend(loop, [framing](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, "HTTP/1.1 200 OK\r\n" + framing);
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(proxy.server.port, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
        CHECK_THAT(answer, Contains("abc"));
        CHECK_THAT(answer, !Contains("0\r\n\r\n"));
    });
}

TEST_CASE("a backend's failure before its head is told by status", "[http][proxy]") {
    Loop loop;
    std::uint16_t port = unused_port(loop);
    Proxy proxy(loop, port);
    ScriptedServer garbled(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, "no HTTP\r\n\r\n");
    });
    Proxy to_garbled(loop, garbled.port);
    loop.run([&]() -> Awaitable<void> {
        auto refused = co_await talk(proxy.server.port, kGetClose);
        CHECK_THAT(refused, StartsWith("HTTP/1.1 503 "));
        CHECK_THAT(refused, Contains("{\"code\":\"GENERAL::UNKNOWN_ERROR\",\"message\":"));
        auto garbage = co_await talk(to_garbled.server.port, kGetClose);
        CHECK_THAT(garbage, StartsWith("HTTP/1.1 502 "));
    });
}

TEST_CASE("HEAD and bodiless answers pass with their length", "[http][proxy]") {
    Loop loop;
    ScriptedServer backend(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        auto request = co_await receive_until(stream, "\r\n\r\n");
        if (request.starts_with("HEAD")) {
            co_await send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n");
        } else {
            co_await send(stream, "HTTP/1.1 304 Not Modified\r\nETag: e\r\n\r\n");
        }
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto head = co_await talk(proxy.server.port,
                                  "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        CHECK_THAT(head, Contains("Content-Length: 1234\r\n"));
        CHECK_THAT(head, EndsWith("\r\n\r\n"));
        auto unmodified = co_await talk(proxy.server.port, kGetClose);
        CHECK_THAT(unmodified, StartsWith("HTTP/1.1 304 Not Modified\r\nETag: e\r\n"));
        CHECK_THAT(unmodified, EndsWith("\r\n\r\n"));
    });
}

TEST_CASE("an upgrade is spliced and each side's end passed on", "[http][proxy][upgrade]") {
    Loop loop;
    std::string seen;
    ScriptedServer backend(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        seen = co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream,
                      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                      "Upgrade: websocket\r\nSec-WebSocket-Accept: abc\r\n\r\nfirst");
        auto all = co_await receive_all(stream);
        co_await send(stream, "got:" + all);
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(proxy.server.port);
        co_await send(*stream, std::string(kWebsocket) + "early ");
        auto head = co_await receive_until(*stream, "first");
        CHECK_THAT(head, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
        CHECK_THAT(head, Contains("Sec-WebSocket-Accept: abc\r\n"));
        CHECK_THAT(head, Contains("Connection: Upgrade\r\n"));
        CHECK_THAT(head, Contains("Upgrade: websocket\r\n"));
        std::string big(1'000'000, 'w');
        co_await send(*stream, big);
        stream->shutdown_send();
        auto rest = co_await receive_all(*stream);
        CHECK(rest == "got:early " + big);
        while (proxy.done == 0)
            co_await net::sleep_for(1ms);
    });
    CHECK_THAT(seen, Contains("Connection: Upgrade\r\n"));
    CHECK_THAT(seen, Contains("Upgrade: websocket\r\n"));
    CHECK_THAT(seen, Contains("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
}

TEST_CASE("a broken side of an upgrade takes the other with it", "[http][proxy][upgrade]") {
    Loop loop;
    net::Event ended(loop.executor());
    ScriptedServer backend(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream,
                      "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        co_await receive_all(stream);
        ended.notify();
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(proxy.server.port);
        co_await send(*stream, kWebsocket);
        co_await receive_until(*stream, "\r\n\r\n");
        stream.reset();
        bool noticed = co_await ended.wait_for(10s);
        CHECK(noticed);
        while (proxy.done == 0)
            co_await net::sleep_for(1ms);
    });
}

TEST_CASE("a WebSocket that the backend does not agree to gets its answer or 502, never 101",
          "[http][proxy][upgrade]") {
    Loop loop;
    Proxy nobody(loop, unused_port(loop));
    TestServer refusing(loop, [](Exchange& exchange) -> Awaitable<void> {
        Response response(403, "text/plain", "no");
        response.head.fields.add("X-Why", "own");
        co_await exchange.respond(std::move(response));
    });
    ScriptedServer speaks_first(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await send(stream, "RFB 003.008\n");
        co_await receive_until(stream, "\r\n\r\n");
    });
    ScriptedServer breaks_off(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
    });
    Proxy refused(loop, refusing.port);
    Proxy other_protocol(loop, speaks_first.port);
    Proxy broken(loop, breaks_off.port);
    std::string last(kWebsocket);
    last.replace(last.find("keep-alive"), 10, "close");
    loop.run([&]() -> Awaitable<void> {
        auto own = co_await talk(refused.server.port, last);
        CHECK_THAT(own, StartsWith("HTTP/1.1 403 ") && Contains("X-Why: own\r\n"));
        CHECK_THAT(own, EndsWith("no"));
        for (Proxy* proxy : {&nobody, &other_protocol, &broken}) {
            auto answer = co_await talk(proxy->server.port, last);
            CHECK_THAT(answer, StartsWith("HTTP/1.1 50") && !Contains("101 Switching"));
        }
    });
}

TEST_CASE("a backend that refuses a body early is heard", "[http][proxy]") {
    Loop loop;
    ScriptedServer backend(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "some");
        co_await send(stream,
                      "HTTP/1.1 413 No\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
        co_await net::sleep_for(50ms);
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(proxy.server.port);
        co_await send(*stream, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nsome");
        auto answer = co_await receive_until(*stream, "big");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 413 "));
        CHECK_THAT(answer, Contains("Connection: close\r\n"));
    });
}

TEST_CASE("trailers pass both ways, but for what only a head may say", "[http][proxy]") {
    Loop loop;
    std::string seen;
    ScriptedServer backend(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        seen = co_await receive_until(stream, "X-Sum: 2\r\n\r\n");
        co_await send(stream,
                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
                      "X-Checksum: abc\r\nContent-Length: 9\r\n\r\n");
    });
    Proxy proxy(loop, backend.port);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(
            proxy.server.port,
            "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\nTransfer-Encoding: x\r\n\r\n");
        CHECK_THAT(answer, EndsWith("2\r\nok\r\n0\r\nX-Checksum: abc\r\n\r\n"));
    });
    CHECK_THAT(seen, EndsWith("3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n"));
}

TEST_CASE("a refused backend may be replaced by another before anything is sent", "[http][proxy]") {
    Loop loop;
    std::string seen;
    ScriptedServer backend(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        seen = co_await receive_until(stream, "body");
        co_await send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    Client client(loop.executor());
    std::uint16_t nobody = unused_port(loop);
    int asked = 0;
    TestServer server(loop, [&](Exchange& exchange) -> Awaitable<void> {
        Forwarding forwarding;
        forwarding.origin = Origin("127.0.0.1", nobody);
        forwarding.target = "/first";
        forwarding.reroute = [&](Forwarding& again) {
            ++asked;
            again.origin = Origin("127.0.0.1", backend.port);
            again.target = "/second";
            return true;
        };
        co_await forward(exchange, client, std::move(forwarding));
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port,
                                    "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                                    "Content-Length: 4\r\n\r\nbody");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 200 OK") && EndsWith("ok"));
    });
    CHECK(asked == 1);
    CHECK_THAT(seen, StartsWith("POST /second") && EndsWith("body"));
}
