#include "support/http_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::http;
using namespace opensandbox::http::test;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

/// Answers with method, target and body.
Awaitable<void> echo(Exchange& exchange) {
    auto body = co_await read_all(exchange.body(), 1 << 20);
    std::string text = exchange.request().method + " " + exchange.request().target + " ";
    text += body ? *body : "error: " + body.error().message();
    Response response(200, "text/plain", std::move(text));
    co_await exchange.respond(std::move(response));
}

}  // namespace

TEST_CASE("a request gets its answer with length and date", "[http][server]") {
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
    loop.run([&]() -> Awaitable<void> {
        std::string bytes =
            "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"
            "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
            "POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            "2\r\nde\r\n1;x=y\r\nf\r\n0\r\nTrailer: v\r\n\r\n"
            "GET /4 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        auto answer = co_await talk(server.port, bytes);
        auto one = answer.find("GET /1 ");
        auto two = answer.find("POST /2 abc");
        auto three = answer.find("POST /3 def");
        auto four = answer.find("GET /4 ");
        REQUIRE(four != std::string::npos);
        CHECK((one < two && two < three && three < four));
    });
}
