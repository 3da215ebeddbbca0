#include "http/client.hpp"
#include "support/http_client_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::http;
using namespace opensandbox::http::test;
using namespace std::chrono_literals;

TEST_CASE("connections are kept and used again", "[http][client][pool]") {
    Loop loop;
    ScriptedServer server(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        while (true) {
            auto request = co_await receive_until(stream, "\r\n\r\n");
            if (request.empty()) co_return;
            co_await send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        for (int i = 0; i < 5; ++i) {
            ClientRequest request("GET", "/");
            auto answer = co_await fetch(client, local(server.port), std::move(request));
            CHECK(answer.body == "ok");
        }
        CHECK(server.connections == 1);
        // A response that is not read to its end takes its connection with it.
        ClientRequest unread("GET", "/");
        auto response = co_await client.send(local(server.port), std::move(unread));
        REQUIRE(response.has_value());
        response->reset();
        ClientRequest last("GET", "/");
        auto answer = co_await fetch(client, local(server.port), std::move(last));
        CHECK(answer.body == "ok");
        CHECK(server.connections == 2);
    });
}

TEST_CASE("a kept connection that the server closed is not used", "[http][client][pool]") {
    Loop loop;
    ScriptedServer server(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        for (int i = 1; i <= 3; ++i) {
            ClientRequest request("POST", "/");
            auto answer = co_await fetch(client, local(server.port), std::move(request));
            CHECK(answer.body == "ok");
            CHECK(server.connections == i);
            co_await net::sleep_for(5ms);
        }
    });
}

TEST_CASE("a kept connection that dies under the request is replaced once",
          "[http][client][pool]") {
    Loop loop;
    // Each connection answers one request and closes only when the next one arrives.
    std::vector<std::string> seen;
    ScriptedServer server(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        seen.push_back(co_await receive_until(stream, "\r\n\r\n"));
        co_await send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        seen.push_back(co_await receive_until(stream, "\r\n\r\n"));
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        ClientRequest first("GET", "/1");
        co_await fetch(client, local(server.port), std::move(first));
        ClientRequest second("GET", "/2");
        auto answer = co_await fetch(client, local(server.port), std::move(second));
        CHECK(answer.body == "ok");
        CHECK(server.connections == 2);
        CHECK(seen.size() == 3);
        // What may not be sent twice is not.
        ClientRequest third("POST", "/3");
        auto refused = co_await fetch(client, local(server.port), std::move(third));
        REQUIRE(refused.failure);
        CHECK(refused.failure->code() == ErrorCode::bad_gateway);
        CHECK(server.connections == 2);
        ClientRequest fourth("GET", "/4");
        co_await fetch(client, local(server.port), std::move(fourth));
        ClientRequest keyed("POST", "/5", {{"Idempotency-Key", "k"}});
        auto repeated = co_await fetch(client, local(server.port), std::move(keyed));
        CHECK(repeated.body == "ok");
    });
}

TEST_CASE("an early refusal ends the sending of the body", "[http][client]") {
    Loop loop;
    ScriptedServer server(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "x\r\n");
        co_await send(stream, "HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nbig");
        co_await receive_all(stream);
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        auto body = std::make_unique<StuckBody>(loop.executor());
        ClientRequest request("POST", "/");
        request.stream = body.get();
        auto response = co_await client.send(local(server.port), std::move(request));
        REQUIRE(response.has_value());
        body.reset();
        CHECK((*response)->head().status == 413);
        auto text = co_await read_all((*response)->body(), 100);
        REQUIRE(text.has_value());
        CHECK(*text == "big");
    });
}

TEST_CASE("in full duplex the response is read while the body is sent", "[http][client]") {
    Loop loop;
    ScriptedServer server(loop, [](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "x\r\n");
        co_await send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
        co_await receive_all(stream);
    });
    Client client(loop.executor());
    loop.run([&]() -> Awaitable<void> {
        auto body = std::make_unique<StuckBody>(loop.executor());
        ClientRequest request("POST", "/");
        request.stream = body.get();
        request.full_duplex = true;
        auto response = co_await client.send(local(server.port), std::move(request));
        REQUIRE(response.has_value());
        auto text = co_await read_all((*response)->body(), 100);
        REQUIRE(text.has_value());
        CHECK(*text == "yes");
        co_await (*response)->stop_sending();
        body.reset();
    });
}

TEST_CASE("a response is aborted from another coroutine", "[http][client][abort]") {
    Loop loop;
    net::Event closed(loop.executor());
    ScriptedServer server(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
        co_await receive_all(stream);
        closed.notify();
    });
    Client client(loop.executor());
    auto aborter = [](ClientResponse& response) -> Awaitable<void> {
        co_await net::sleep_for(2ms);
        response.abort();
    };
    loop.run([&]() -> Awaitable<void> {
        ClientRequest request("GET", "/");
        auto response = co_await client.send(local(server.port), std::move(request));
        REQUIRE(response.has_value());
        net::spawn(loop.executor(), aborter(**response), "aborter");
        auto body = co_await read_all((*response)->body(), 1000);
        REQUIRE_FALSE(body.has_value());
        CHECK(body.error().code() == ErrorCode::cancelled);
        bool seen = co_await closed.wait_for(10s);
        CHECK(seen);
    });
}

TEST_CASE("a request is aborted before its response comes", "[http][client][abort]") {
    Loop loop;
    ScriptedServer server(
        loop, [](net::Stream& stream, int) -> Awaitable<void> { co_await receive_all(stream); });
    Client client(loop.executor());
    auto aborter = [](AbortHandle& handle) -> Awaitable<void> {
        co_await net::sleep_for(2ms);
        handle.abort();
    };
    loop.run([&]() -> Awaitable<void> {
        AbortHandle handle;
        ClientRequest request("GET", "/");
        request.abort = &handle;
        net::spawn(loop.executor(), aborter(handle), "aborter");
        auto answer = co_await fetch(client, local(server.port), std::move(request));
        REQUIRE(answer.failure);
        CHECK(answer.failure->code() == ErrorCode::cancelled);
        ClientRequest again("GET", "/");
        again.abort = &handle;
        auto at_once = co_await fetch(client, local(server.port), std::move(again));
        REQUIRE(at_once.failure);
        CHECK(at_once.failure->code() == ErrorCode::cancelled);
    });
}

TEST_CASE("a cancelled caller gets out of a request with a streamed body",
          "[http][client][abort]") {
    Loop loop;
    ScriptedServer server(
        loop, [](net::Stream& stream, int) -> Awaitable<void> { co_await receive_all(stream); });
    Client client(loop.executor());
    struct Caller {
        static Awaitable<void> run(Client& client, Origin origin, asio::any_io_executor executor,
                                   net::Event& ended) {
            StuckBody body(executor);
            ClientRequest request("POST", "/");
            request.stream = &body;
            auto response = co_await client.send(origin, std::move(request));
            CHECK_FALSE(response.has_value());
            ended.notify();
        }
    };
    loop.run([&]() -> Awaitable<void> {
        net::Event ended(loop.executor());
        auto cancel = net::spawn_cancellable(
            loop.executor(), Caller::run(client, local(server.port), loop.executor(), ended),
            "caller");
        co_await net::sleep_for(5ms);
        cancel->emit(asio::cancellation_type::terminal);
        bool out = co_await ended.wait_for(10s);
        CHECK(out);
    });
}

TEST_CASE("the pool keeps no more than its limit and forgets the old", "[http][client][pool]") {
    Loop loop;
    int ended = 0;
    ScriptedServer server(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
        co_await receive_until(stream, "\r\n\r\n");
        co_await send(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        co_await receive_all(stream);
        ++ended;
    });
    ClientOptions options;
    options.max_idle_per_origin = 1;
    options.idle_timeout = 40ms;
    Client client(loop.executor(), options);
    loop.run([&]() -> Awaitable<void> {
        ClientRequest one("GET", "/");
        ClientRequest two("GET", "/");
        auto first = co_await client.send(local(server.port), std::move(one));
        auto second = co_await client.send(local(server.port), std::move(two));
        REQUIRE(first.has_value());
        REQUIRE(second.has_value());
        co_await read_all((*first)->body(), 10);
        co_await read_all((*second)->body(), 10);
        while (ended < 1)
            co_await net::sleep_for(1ms);
        while (ended < 2)
            co_await net::sleep_for(1ms);
    });
    CHECK(ended == 2);
}
