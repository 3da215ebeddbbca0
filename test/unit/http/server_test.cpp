#include "http/server.hpp"

#include "support/http_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::http;
using namespace opensandbox::http::test;
using namespace std::chrono_literals;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kGetClose = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// Answers with method, target and body.
Awaitable<void> echo(Exchange& exchange) {
    auto body = co_await read_all(exchange.body(), 1 << 20);
    std::string text = exchange.request().method + " " + exchange.request().target + " ";
    text += body ? *body : "error: " + std::string(to_string(body.error().code()));
    Response response(200, "text/plain", std::move(text));
    co_await exchange.respond(std::move(response));
}

Awaitable<void> ignore_body(Exchange& exchange) {
    Response response(200, "text/plain", "ignored");
    co_await exchange.respond(std::move(response));
}

std::string post(std::string_view fields, std::string_view body, std::string_view target = "/") {
    return "POST " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) +
           "\r\n" + std::string(body);
}

}  // namespace

TEST_CASE("a request gets its answer with length and one date", "[http][server]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(
            server.port, "GET /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
        CHECK_THAT(answer, EndsWith("\r\n\r\nGET /a%20b?x=1 "));
        CHECK_THAT(answer, Contains("Content-Length: 15\r\n"));
        CHECK_THAT(answer, Contains("Connection: close\r\n"));
        CHECK(count_of(answer, "\r\nDate: ") == 1);
    });
}

TEST_CASE("pipelined requests are answered in order", "[http][server]") {
    Loop loop;
    TestServer server(loop, echo);
    auto step = GENERATE(1, 7, 100000);
    loop.run([&]() -> Awaitable<void> {
        std::string bytes = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n" +
                            post("Content-Length: 3\r\n", "abc", "/2") + "\r\n" +
                            post("Transfer-Encoding: chunked\r\n",
                                 "2\r\nde\r\n1;x=y\r\nf\r\n0\r\nTrailer: v\r\n\r\n", "/3") +
                            "GET /4 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        auto stream = co_await dial(server.port);
        for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(step)) {
            co_await send(*stream,
                          std::string_view(bytes).substr(at, static_cast<std::size_t>(step)));
            co_await net::sleep_for(0ms);
        }
        auto answer = co_await receive_all(*stream);
        auto one = answer.find("GET /1 ");
        auto two = answer.find("POST /2 abc");
        auto three = answer.find("POST /3 def");
        auto four = answer.find("GET /4 ");
        REQUIRE(four != std::string::npos);
        CHECK((one < two && two < three && three < four));
    });
}

TEST_CASE("a malformed request gets 400 and the connection ends", "[http][server]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(
            server.port, "GET / HTTP/1.1\r\nBad Header\r\n\r\n" + std::string(kGetClose));
        CHECK_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
        CHECK_THAT(answer, Contains("Connection: close\r\n"));
        CHECK_THAT(answer, Contains("\"message\":"));
        CHECK(count_of(answer, "HTTP/1.1 ") == 1);
    });
}

TEST_CASE("a bare line feed is refused without waiting for more", "[http][server]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, "GET / HTTP/1.1\n");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 400 "));
    });
}

TEST_CASE("a request after a smuggling attempt is never seen", "[http][server]") {
    Loop loop;
    int seen = 0;
    TestServer server(loop, [&seen](Exchange& exchange) -> Awaitable<void> {
        ++seen;
        co_await echo(exchange);
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer =
            co_await talk(server.port, post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                                            "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"));
        CHECK_THAT(answer, StartsWith("HTTP/1.1 400 "));
        CHECK(seen == 0);
    });
}

TEST_CASE("a head that is too large gets 431", "[http][server]") {
    Loop loop;
    ServerOptions options;
    options.max_head = 1000;
    TestServer server(loop, echo, options);
    loop.run([&]() -> Awaitable<void> {
        std::string endless = "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(5000, 'x');
        auto answer = co_await talk(server.port, endless);
        CHECK_THAT(answer, StartsWith("HTTP/1.1 431 "));
        auto complete = co_await talk(server.port, endless + "\r\n\r\n");
        CHECK_THAT(complete, StartsWith("HTTP/1.1 431 "));
    });
}

TEST_CASE("a body past the limit gets 413 before the handler runs", "[http][server]") {
    Loop loop;
    ServerOptions options;
    options.max_body = 10;
    TestServer server(loop, echo, options);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, post("Content-Length: 11\r\n", "01234567890"));
        CHECK_THAT(answer, StartsWith("HTTP/1.1 413 "));
        auto chunked =
            co_await talk(server.port, post("Transfer-Encoding: chunked\r\nConnection: close\r\n",
                                            "b\r\n01234567890\r\n0\r\n\r\n"));
        CHECK_THAT(chunked, EndsWith("error: too_large"));
        auto fits = co_await talk(
            server.port, post("Content-Length: 10\r\nConnection: close\r\n", "0123456789"));
        CHECK_THAT(fits, EndsWith("POST / 0123456789"));
    });
}

TEST_CASE("broken chunks reach the handler as a protocol error", "[http][server]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, post("Transfer-Encoding: chunked\r\n", "zz\r\n"));
        CHECK_THAT(answer, EndsWith("error: protocol"));
        CHECK_THAT(answer, Contains("Connection: close\r\n"));
    });
}

TEST_CASE("a client that leaves inside its body is seen as gone", "[http][server]") {
    Loop loop;
    std::optional<Error> failure;
    net::Event ended(loop.executor());
    TestServer server(loop, [&](Exchange& exchange) -> Awaitable<void> {
        auto body = co_await read_all(exchange.body(), 1000);
        if (!body) failure = body.error();
        ended.notify();
    });
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(server.port);
        co_await send(*stream, post("Content-Length: 100\r\n", "half"));
        stream.reset();
        bool noticed = co_await ended.wait_for(10s);
        REQUIRE(noticed);
        REQUIRE(failure);
        CHECK(failure->code() == ErrorCode::cancelled);
    });
}

TEST_CASE("leave to send the body is given when the handler reads it", "[http][server]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(server.port);
        co_await send(*stream, post("Expect: 100-continue\r\nContent-Length: 3\r\n", ""));
        auto interim = co_await receive_until(*stream, "\r\n\r\n");
        CHECK(interim == "HTTP/1.1 100 Continue\r\n\r\n");
        co_await send(*stream, "abc" + std::string(kGetClose));
        auto answer = co_await receive_all(*stream);
        CHECK_THAT(answer, StartsWith("HTTP/1.1 200 "));
        CHECK_THAT(answer, Contains("POST / abc"));
        CHECK_THAT(answer, EndsWith("GET / "));
    });
}

TEST_CASE("a body that nobody wants is not asked for", "[http][server]") {
    Loop loop;
    TestServer server(loop, ignore_body);
    loop.run([&]() -> Awaitable<void> {
        auto answer =
            co_await talk(server.port, post("Expect: 100-continue\r\nContent-Length: 3\r\n", ""));
        CHECK_THAT(answer, StartsWith("HTTP/1.1 200 "));
        CHECK_THAT(answer, Contains("Connection: close\r\n"));
        auto unknown = co_await talk(server.port, post("Expect: x\r\nContent-Length: 3\r\n", ""));
        CHECK_THAT(unknown, StartsWith("HTTP/1.1 417 "));
    });
}

TEST_CASE("a small body left unread does not end the connection", "[http][server]") {
    Loop loop;
    TestServer server(loop, ignore_body);
    loop.run([&]() -> Awaitable<void> {
        std::string body(60'000, 'x');
        auto answer = co_await talk(
            server.port, post("Content-Length: 60000\r\n", body) +
                             post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n") +
                             std::string(kGetClose));
        CHECK(count_of(answer, "HTTP/1.1 200 OK") == 3);
    });
}

TEST_CASE("a large body left unread ends the connection after the answer", "[http][server]") {
    Loop loop;
    TestServer server(loop, ignore_body);
    loop.run([&]() -> Awaitable<void> {
        std::string body(1'000'000, 'x');
        auto answer = co_await talk(server.port,
                                    post("Content-Length: 1000000\r\n", body) + std::string(kGet));
        CHECK_THAT(answer, EndsWith("ignored"));
        CHECK_THAT(answer, Contains("Connection: close\r\n"));
        CHECK(count_of(answer, "HTTP/1.1 ") == 1);
    });
}

TEST_CASE("HEAD gets the head of the answer only", "[http][server]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        if (exchange.request().target == "/stream") {
            ResponseHead head(200);
            co_await exchange.start(std::move(head));
            co_await exchange.write("body");
            co_await exchange.finish();
            co_return;
        }
        Response response(200, "text/plain", "body");
        co_await exchange.respond(std::move(response));
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer =
            co_await talk(server.port,
                          "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"
                          "HEAD /stream HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        CHECK_THAT(answer, Contains("Content-Length: 4\r\n"));
        CHECK_THAT(answer, !Contains("body"));
        CHECK(count_of(answer, "HTTP/1.1 200 OK") == 2);
        CHECK_THAT(answer, EndsWith("\r\n\r\n"));
    });
}

TEST_CASE("HTTP/1.0 connections end unless asked to stay", "[http][server]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        auto closed = co_await talk(server.port, "GET / HTTP/1.0\r\n\r\n");
        CHECK_THAT(closed, EndsWith("GET / "));
        auto kept = co_await talk(server.port,
                                  "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                                  "GET /2 HTTP/1.0\r\n\r\n");
        CHECK_THAT(kept, Contains("Connection: keep-alive\r\n"));
        CHECK_THAT(kept, EndsWith("GET /2 "));
    });
}

TEST_CASE("a handler that throws gets a 500 sent, one that forgets as well", "[http][server]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        exchange.response_fields.add("X-Request-ID", "r1");
        if (exchange.request().target == "/throw") throw std::runtime_error("thrown on purpose");
        co_return;
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(
            server.port, "GET /throw HTTP/1.1\r\nHost: h\r\n\r\n" + std::string(kGetClose));
        CHECK(count_of(answer, "HTTP/1.1 500 ") == 2);
        CHECK(count_of(answer, "{\"code\":\"GENERAL::UNKNOWN_ERROR\",\"message\":") == 2);
        CHECK(count_of(answer, "X-Request-ID: r1\r\n") == 2);
    });
}

TEST_CASE("an answer's own date is kept, its framing fields are not", "[http][server]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        Response response(200, "text/plain", "four");
        response.head.fields.add("date", "then");
        response.head.fields.add("Content-Length", "999");
        response.head.fields.add("Transfer-Encoding", "chunked");
        response.head.fields.add("Evil", "a\r\nInjected: b");
        co_await exchange.respond(std::move(response));
        CHECK(exchange.bytes_sent() == 4);
        CHECK(exchange.status() == 200);
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, kGetClose);
        CHECK_THAT(answer, Contains("date: then\r\n"));
        CHECK(count_of(answer, "ate: ") == 1);
        CHECK(count_of(answer, "Content-Length: ") == 1);
        CHECK_THAT(answer, Contains("Content-Length: 4\r\n"));
        CHECK_THAT(answer, !Contains("chunked"));
        CHECK_THAT(answer, Contains("Evil: a  Injected: b\r\n"));
    });
}

TEST_CASE("no content has neither length nor body", "[http][server]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        Response response(204, "text/plain", "dropped");
        co_await exchange.respond(std::move(response));
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, std::string(kGet) + std::string(kGetClose));
        CHECK(count_of(answer, "HTTP/1.1 204 ") == 2);
        CHECK_THAT(answer, !Contains("Content-Length"));
        CHECK_THAT(answer, !Contains("dropped"));
    });
}
