#include "http/client.hpp"

#include "support/body_text.hpp"
#include "support/http_client_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::http;
using namespace opensandbox::http::test;
using namespace std::chrono_literals;
using Catch::Contains;
using Catch::EndsWith;
using test_support::BodyText;

namespace {

/// Answers with the request as received: start line, fields of interest, body.
Awaitable<void> mirror(Exchange& exchange) {
    const auto& request = exchange.request();
    auto body = co_await read_all(exchange.body(), 100 << 20);
    std::string text = request.method + " " + request.target + "\n";
    for (const auto& [name, value] : request.fields)
        text += name + ": " + value + "\n";
    text += "\n" + (body ? *body : std::string("broken"));
    Response response(200, "text/plain", std::move(text));
    co_await exchange.respond(std::move(response));
}

}  // namespace

TEST_CASE("a request carries host, fields and body", "[http][client]") {
    Loop loop;
    TestServer server(loop, mirror);
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("POST", "/a%20b?c", {{"X-A", "1"}, {"X-A", "2"}});
        request.content = "hello";
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        CHECK(answer.status == 200);
        CHECK(answer.body == "POST /a%20b?c\nHost: 127.0.0.1:" + std::to_string(server.port) +
                                 "\nX-A: 1\nX-A: 2\nContent-Length: 5\n\nhello");
    });
}

TEST_CASE("framing is the client's: lengths and codings given by hand do not count",
          "[http][client]") {
    Loop loop;
    TestServer server(loop, mirror);
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("PUT", "/",
                              {{"Content-Length", "99"}, {"Transfer-Encoding", "chunked"}});
        request.content = "abc";
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        CHECK_THAT(answer.body, Contains("Content-Length: 3\n"));
        CHECK_THAT(answer.body, !Contains("Transfer-Encoding"));
        ClientRequest empty("POST", "/");
        auto nothing = co_await fetch(client, local(server.port), std::move(empty));
        CHECK_THAT(nothing.body, Contains("Content-Length: 0\n"));
        ClientRequest bad("GET", "/a b");
        auto refused = co_await fetch(client, local(server.port), std::move(bad));
        REQUIRE(refused.failure);
        CHECK(refused.failure->code() == ErrorCode::invalid_argument);
    });
}

TEST_CASE("streamed bodies go out chunked, or with their length when known", "[http][client]") {
    Loop loop;
    TestServer server(loop, mirror);
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        std::string text(300'000, 'y');
        BodyText unknown(text, 10'000);
        ClientRequest chunked("POST", "/");
        chunked.stream = &unknown;
        auto answer = co_await fetch(client, local(server.port), std::move(chunked));
        CHECK_THAT(answer.body, Contains("Transfer-Encoding: chunked\n"));
        CHECK_THAT(answer.body, EndsWith("\n\n" + text));
        BodyText known(text, 10'000, true);
        ClientRequest sized("POST", "/");
        sized.stream = &known;
        auto again = co_await fetch(client, local(server.port), std::move(sized));
        CHECK_THAT(again.body, Contains("Content-Length: 300000\n"));
        CHECK_THAT(again.body, EndsWith("\n\n" + text));
        ClientRequest large("POST", "/");
        large.content = std::string(2'000'000, 'z');
        auto whole = co_await fetch(client, local(server.port), std::move(large));
        CHECK_THAT(whole.body, EndsWith("\n\n" + std::string(2'000'000, 'z')));
    });
}

TEST_CASE("a fresh connection that dies is an error, not a loop", "[http][client]") {
    Loop loop;
    ScriptedServer server(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("GET", "/");
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        REQUIRE(answer.failure);
        CHECK(answer.failure->code() == ErrorCode::bad_gateway);
        CHECK(server.connections == 1);
    });
}

TEST_CASE("interim responses are skipped", "[http][client]") {
    Loop loop;
    ScriptedServer server(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream,
                      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("GET", "/");
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        CHECK(answer.status == 200);
        CHECK(answer.body == "ok");
    });
}

TEST_CASE("responses without body leave the connection usable", "[http][client]") {
    Loop loop;
    ScriptedServer server(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        for (auto head :
             {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
              "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"}) {
            co_await receive_until(stream, "\r\n\r\n");
            co_await send(stream, head);
        }
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest head("HEAD", "/");
        auto first = co_await fetch(client, local(server.port), std::move(head));
        CHECK((first.status == 200 && first.body.empty() && !first.failure));
        for (int expected : {204, 304, 200}) {
            ClientRequest request("GET", "/");
            auto answer = co_await fetch(client, local(server.port), std::move(request));
            CHECK(answer.status == expected);
            CHECK(answer.body == (expected == 200 ? "ok" : ""));
        }
        CHECK(server.connections == 1);
    });
}

TEST_CASE("a body that ends with its connection is read to there", "[http][client]") {
    Loop loop;
    ScriptedServer server(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, "HTTP/1.1 200 OK\r\n\r\nuntil ");
        co_await net::sleep_for(1ms);
        co_await send(stream, "close");
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("GET", "/");
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        CHECK(answer.body == "until close");
        CHECK_FALSE(answer.failure);
    });
}

TEST_CASE("bodies cut short are errors", "[http][client]") {
    Loop loop;
    auto bytes = GENERATE("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
                          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
                          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    ScriptedServer server(loop, [bytes](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, bytes);
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("GET", "/");
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        CHECK(answer.status == 200);
        REQUIRE(answer.failure);
        CHECK(answer.failure->code() == ErrorCode::bad_gateway);
    });
}

TEST_CASE("garbage instead of a response is a bad gateway", "[http][client]") {
    Loop loop;
    auto bytes = GENERATE(as<std::string>(), "SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\nA: b\n\n",
                          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                          "HTTP/1.1 200 OK\r\nX: " + std::string(300'000, 'x'), "HTTP/1.1 20");
    ScriptedServer server(loop, [bytes](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await net::write_all(stream, bytes);
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("GET", "/");
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        REQUIRE(answer.failure);
        CHECK(answer.failure->code() == ErrorCode::bad_gateway);
    });
}

TEST_CASE("no server is unavailable, a silent one a timeout", "[http][client]") {
    Loop loop;
    ScriptedServer server(
        loop, [](net::Stream& stream, int) -> Awaitable<void> { co_await receive_all(stream); });
    std::uint16_t unused = 0;
    {
        auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
        REQUIRE(listener.has_value());
        unused = (*listener)->port();
    }
    ClientOptions options;
    options.head_timeout = 20ms;
    Client client(loop.executor(), options);
    loop.run([&]() -> Awaitable<void> {
        ClientRequest nowhere("GET", "/");
        auto refused = co_await fetch(client, local(unused), std::move(nowhere));
        REQUIRE(refused.failure);
        CHECK(refused.failure->code() == ErrorCode::unavailable);
        ClientRequest silent("GET", "/");
        auto late = co_await fetch(client, local(server.port), std::move(silent));
        REQUIRE(late.failure);
        CHECK(late.failure->code() == ErrorCode::timeout);
    });
}

TEST_CASE("a request body that breaks off or breaks its length is an error", "[http][client]") {
    struct LyingBody final : BodyReader {
        explicit LyingBody(std::size_t n) : given(n) {}
        Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
            co_return std::exchange(given, 0);
        }
        std::optional<std::uint64_t> content_length() const override { return 10; }
        std::size_t given;
    };
    struct BrokenBody final : BodyReader {
        Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
            co_return Error(ErrorCode::not_found, "the file went away");
        }
        std::optional<std::uint64_t> content_length() const override { return 10; }
    };
    Loop loop;
    TestServer server(loop, mirror);
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        for (std::size_t given : {3, 11}) {
            LyingBody liar(given);
            ClientRequest request("POST", "/");
            request.stream = &liar;
            auto answer = co_await fetch(client, local(server.port), std::move(request));
            REQUIRE(answer.failure);
            CHECK(answer.failure->code() == ErrorCode::internal);
        }
        BrokenBody broken;
        ClientRequest request("POST", "/");
        request.stream = &broken;
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        REQUIRE(answer.failure);
        CHECK(answer.failure->code() == ErrorCode::not_found);
    });
}

TEST_CASE("requests go over Unix sockets", "[http][client]") {
    Loop loop;
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("GET", "/");
        auto missing =
            co_await fetch(client, Origin::unix_socket("/nonexistent/x"), std::move(request));
        REQUIRE(missing.failure);
        CHECK(missing.failure->code() == ErrorCode::unavailable);
    });
}

TEST_CASE("an upload that goes on is no silence of the server", "[http][client]") {
    /// Gives one byte at a time, each after a pause: longer in all than the limit.
    struct SlowBody final : BodyReader {
        Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
            if (left == 0) co_return 0;
            --left;
            co_await net::sleep_for(100ms);
            into[0] = 'x';
            co_return 1;
        }
        std::optional<std::uint64_t> content_length() const override { return std::nullopt; }
        int left = 12;
    };
    Loop loop;
    TestServer server(loop, mirror);
    ClientOptions options;
    options.head_timeout = 1s;
    Client client(loop.executor(), options);
    loop.run([&]() -> Awaitable<void> {
        SlowBody body;
        ClientRequest request("POST", "/");
        request.stream = &body;
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        CHECK_FALSE(answer.failure);
        CHECK_THAT(answer.body, EndsWith("xxxxxxxxxxxx"));
    });
}
