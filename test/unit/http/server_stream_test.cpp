#include "http/event_stream.hpp"
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

std::string body_of(const std::string& answer) {
    auto end = answer.find("\r\n\r\n");
    return end == std::string::npos ? std::string() : answer.substr(end + 4);
}

}  // namespace

TEST_CASE("each write is one chunk that arrives at once", "[http][server][stream]") {
    Loop loop;
    net::Event next(loop.executor());
    TestServer server(loop, [&](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head = event_stream_head();
        co_await exchange.start(std::move(head));
        CHECK(exchange.started());
        co_await exchange.write("data: 1\n\n");
        co_await next.wait();
        co_await exchange.write("");
        co_await exchange.write("data: two\n\n");
        co_await exchange.finish();
        CHECK(exchange.bytes_sent() == 20);
    });
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(server.port);
        co_await send(*stream, kGetClose);
        auto first = co_await receive_until(*stream, "data: 1\n\n\r\n");
        CHECK_THAT(first, Contains("Content-Type: text/event-stream\r\n"));
        CHECK_THAT(first, Contains("Transfer-Encoding: chunked\r\n"));
        CHECK(body_of(first) == "9\r\ndata: 1\n\n\r\n");
        next.notify();
        auto rest = co_await receive_all(*stream);
        CHECK(rest == "b\r\ndata: two\n\n\r\n0\r\n\r\n");
    });
}

TEST_CASE("a streamed answer with a length is not chunked", "[http][server][stream]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(200);
        head.fields.add("Content-Length", "6");
        co_await exchange.start(std::move(head));
        co_await exchange.write("abc");
        auto over = co_await exchange.write("defg");
        CHECK_FALSE(over.has_value());
        co_await exchange.write("def");
        co_await exchange.finish();
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, std::string(kGet) + std::string(kGetClose));
        CHECK(count_of(answer, "\r\n\r\nabcdef") == 2);
        CHECK(count_of(answer, "Content-Length: 6\r\n") == 2);
        CHECK_THAT(answer, !Contains("chunked"));
    });
}

TEST_CASE("an HTTP/1.0 client gets a stream that ends with the connection", "[http][server]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(200);
        co_await exchange.start(std::move(head));
        co_await exchange.write("abc");
        co_await exchange.finish();
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer =
            co_await talk(server.port, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        CHECK(body_of(answer) == "abc");
        CHECK_THAT(answer, Contains("Connection: close\r\n"));
    });
}

TEST_CASE("a handler that stops in mid-stream cuts the connection", "[http][server][stream]") {
    Loop loop;
    auto throwing = GENERATE(true, false);
    TestServer server(loop, [throwing](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(200);
        co_await exchange.start(std::move(head));
        co_await exchange.write("abc");
        if (throwing) throw std::runtime_error("thrown on purpose");
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, std::string(kGet) + std::string(kGet));
        CHECK(body_of(answer) == "3\r\nabc\r\n");
    });
}

TEST_CASE("finishing a body short of its length cuts the connection", "[http][server][stream]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(200);
        head.fields.add("Content-Length", "6");
        co_await exchange.start(std::move(head));
        co_await exchange.write("abc");
        auto finished = co_await exchange.finish();
        CHECK_FALSE(finished.has_value());
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, std::string(kGet) + std::string(kGet));
        CHECK(body_of(answer) == "abc");
    });
}

TEST_CASE("writing to a client that left fails as cancelled", "[http][server][stream]") {
    Loop loop;
    net::Event ended(loop.executor());
    std::optional<Error> failure;
    TestServer server(loop, [&](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(200);
        co_await exchange.start(std::move(head));
        std::string piece(65536, 'x');
        while (!failure) {
            auto written = co_await exchange.write(piece);
            if (!written) failure = written.error();
        }
        ended.notify();
    });
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(server.port);
        co_await send(*stream, kGet);
        co_await receive_until(*stream, "x");
        stream.reset();
        bool noticed = co_await ended.wait_for(10s);
        REQUIRE(noticed);
        CHECK(failure->code() == ErrorCode::cancelled);
    });
}

TEST_CASE("a handler learns that its client left", "[http][server][gone]") {
    Loop loop;
    net::Event ended(loop.executor());
    TestServer server(loop, [&](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head = event_stream_head();
        co_await exchange.start(std::move(head));
        co_await exchange.client_gone();
        co_await exchange.client_gone();
        ended.notify();
    });
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(server.port);
        co_await send(*stream, kGet);
        co_await receive_until(*stream, "\r\n\r\n");
        stream.reset();
        bool noticed = co_await ended.wait_for(10s);
        CHECK(noticed);
    });
}

TEST_CASE("requests pipelined behind a watched one are not lost", "[http][server][gone]") {
    Loop loop;
    net::Event over(loop.executor());
    net::Event go_on(loop.executor());
    int count = 0;
    auto watcher = [](Awaitable<void> gone, net::Event& over) -> Awaitable<void> {
        co_await std::move(gone);
        over.notify();
    };
    TestServer server(loop, [&](Exchange& exchange) -> Awaitable<void> {
        net::spawn(loop.executor(), watcher(exchange.client_gone(), over), "watcher");
        if (++count == 1) co_await go_on.wait();
        Response response(200, "text/plain", "n" + std::to_string(count));
        co_await exchange.respond(std::move(response));
    });
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(server.port);
        co_await send(*stream, kGet);
        co_await net::sleep_for(5ms);
        co_await send(*stream, std::string(kGet) + std::string(kGetClose).substr(0, 10));
        co_await net::sleep_for(5ms);
        bool gone_early = co_await over.wait_for(1ms);
        CHECK_FALSE(gone_early);
        go_on.notify();
        co_await receive_until(*stream, "n1");
        bool ended = co_await over.wait_for(10s);
        CHECK(ended);
        co_await send(*stream, std::string(kGetClose).substr(10));
        auto rest = co_await receive_all(*stream);
        CHECK_THAT(rest, EndsWith("n3"));
    });
    CHECK(count == 3);
}

TEST_CASE("an upgraded connection is handed over with what was read", "[http][server][upgrade]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(101);
        head.fields.add("Connection", "Upgrade");
        head.fields.add("Upgrade", "echo");
        co_await exchange.start(std::move(head));
        Upgraded connection = exchange.upgrade();
        CHECK(connection.buffered == "early");
        co_await net::write_all(*connection.stream, connection.buffered + " bird");
    });
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(
            server.port,
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
        CHECK_THAT(answer, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
        CHECK_THAT(answer, Contains("Connection: Upgrade\r\n"));
        CHECK_THAT(answer, !Contains("Content-Length"));
        CHECK(body_of(answer) == "early bird");
    });
}

TEST_CASE("idle connections are closed when their time is up", "[http][server][limits]") {
    Loop loop;
    ServerOptions options;
    options.idle_timeout = 20ms;
    TestServer server(
        loop,
        [](Exchange& exchange) -> Awaitable<void> {
            Response response(200, "text/plain", "ok");
            co_await exchange.respond(std::move(response));
        },
        options);
    loop.run([&]() -> Awaitable<void> {
        auto silent = co_await talk(server.port, "");
        CHECK(silent.empty());
        auto once = co_await talk(server.port, kGet);
        CHECK_THAT(once, EndsWith("ok"));
        CHECK_THAT(once, !Contains("Connection: close"));
    });
    CHECK(server.server.open_connections() == 0);
}

TEST_CASE("a head that never ends is cut off", "[http][server][limits]") {
    Loop loop;
    ServerOptions options;
    options.head_timeout = 20ms;
    int seen = 0;
    TestServer server(
        loop,
        [&seen](Exchange&) -> Awaitable<void> {
            ++seen;
            co_return;
        },
        options);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await talk(server.port, "GET / HTTP/1.1\r\nHost: ");
        CHECK(answer.empty());
    });
    CHECK(seen == 0);
}

TEST_CASE("connections past the limit wait for those that serve a request",
          "[http][server][limits]") {
    Loop loop;
    net::Event entered(loop.executor());
    net::Event go_on(loop.executor());
    ServerOptions options;
    options.max_connections = 1;
    TestServer server(
        loop,
        [&](Exchange& exchange) -> Awaitable<void> {
            if (exchange.request().target == "/slow") {
                entered.notify();
                co_await go_on.wait();
            }
            Response response(200, "text/plain", "ok");
            co_await exchange.respond(std::move(response));
        },
        options);
    loop.run([&]() -> Awaitable<void> {
        auto first = co_await dial(server.port);
        co_await send(*first, "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
        co_await entered.wait();
        auto second = co_await dial(server.port);
        co_await send(*second, kGetClose);
        co_await net::sleep_for(5ms);
        CHECK(second->quiet());
        CHECK(server.server.open_connections() == 1);
        go_on.notify();
        co_await receive_until(*first, "ok");
        // The first one waits for its next request now.
        auto answer = co_await receive_all(*second);
        CHECK_THAT(answer, EndsWith("ok"));
        auto rest = co_await receive_all(*first);
        CHECK(rest.empty());
    });
}

TEST_CASE("idle connections and slow heads give way to new ones, the longest waiting first",
          "[http][server][limits]") {
    Loop loop;
    ServerOptions options;
    options.max_connections = 8;
    TestServer server(
        loop,
        [](Exchange& exchange) -> Awaitable<void> {
            if (exchange.request().fields.has("Key")) set_authorized(exchange);
            Response response(200, "text/plain", "ok");
            co_await exchange.respond(std::move(response));
        },
        options);
    loop.run([&]() -> Awaitable<void> {
        auto known = co_await dial(server.port);
        co_await send(*known, "GET / HTTP/1.1\r\nHost: h\r\nKey: k\r\n\r\n");
        co_await receive_until(*known, "ok");
        std::vector<std::unique_ptr<net::Stream>> strangers;
        for (int i = 0; i < 60; ++i) {
            strangers.push_back(co_await dial(server.port));
            if (i % 2 == 0) co_await send(*strangers.back(), "GET / HTTP/1.1\r\nHo");
        }
        auto answer = co_await talk(server.port, kGetClose);
        CHECK_THAT(answer, EndsWith("ok"));
        CHECK(server.server.open_connections() <= 8);
        auto oldest = co_await receive_all(*strangers.front());
        CHECK(oldest.empty());
        // Who had a key before is the last that gives way.
        co_await send(*known, kGetClose);
        auto again = co_await receive_all(*known);
        CHECK_THAT(again, EndsWith("ok"));
    });
}

TEST_CASE("requests that are not authorized give way where no connection waits",
          "[http][server][limits]") {
    Loop loop;
    net::Event go_on(loop.executor());
    ServerOptions options;
    options.max_connections = 2;
    options.tells_authorized = true;
    int entered = 0;
    TestServer server(
        loop,
        [&](Exchange& exchange) -> Awaitable<void> {
            ++entered;
            if (exchange.request().fields.has("Key")) set_authorized(exchange);
            if (exchange.request().target == "/hang") {
                co_await exchange.client_gone();
                co_return;
            }
            if (exchange.request().target == "/slow") co_await go_on.wait();
            Response response(200, "text/plain", "ok");
            co_await exchange.respond(std::move(response));
        },
        options);
    loop.run([&]() -> Awaitable<void> {
        auto kept = co_await dial(server.port);
        co_await send(*kept, "GET /slow HTTP/1.1\r\nHost: h\r\nKey: k\r\n\r\n");
        auto stranger = co_await dial(server.port);
        co_await send(*stranger, "GET /hang HTTP/1.1\r\nHost: h\r\n\r\n");
        while (entered < 2)
            co_await net::sleep_for(1ms);
        auto answer = co_await talk(server.port, kGetClose);
        CHECK_THAT(answer, EndsWith("ok"));
        auto cut = co_await receive_all(*stranger);
        CHECK(cut.empty());
        go_on.notify();
        auto slow = co_await receive_until(*kept, "ok");
        CHECK_THAT(slow, EndsWith("ok"));
    });
}

TEST_CASE("a client that takes nothing of its answer is cut unless it is authorized",
          "[http][server][limits]") {
    Loop loop;
    ServerOptions options;
    options.tells_authorized = true;
    options.unauthorized_send_timeout = 20ms;
    options.head_timeout = 20ms;
    std::vector<bool> ended;
    TestServer server(
        loop,
        [&](Exchange& exchange) -> Awaitable<void> {
            bool known = exchange.request().fields.has("Key");
            if (known) set_authorized(exchange);
            Response response(200, "text/plain", std::string(std::size_t{32} << 20, 'x'));
            co_await exchange.respond(std::move(response));
            ended.push_back(known);
        },
        options);
    loop.run([&]() -> Awaitable<void> {
        auto patient = co_await dial(server.port);
        co_await send(*patient, "GET / HTTP/1.1\r\nHost: h\r\nKey: k\r\n\r\n");
        auto stranger = co_await dial(server.port);
        co_await send(*stranger, kGet);
        while (ended.empty())
            co_await net::sleep_for(1ms);
        CHECK(ended == std::vector<bool>{false});
        CHECK(server.server.open_connections() == 1);
        auto whole = co_await receive_until(*patient, std::string(std::size_t{32} << 20, 'x'));
        CHECK(whole.size() > std::size_t{32} << 20);
    });
}

TEST_CASE("a drain closes idle connections and waits for the others", "[http][server][drain]") {
    Loop loop;
    net::Event entered(loop.executor());
    net::Event go_on(loop.executor());
    TestServer server(loop, [&](Exchange& exchange) -> Awaitable<void> {
        if (exchange.request().target == "/slow") {
            entered.notify();
            co_await go_on.wait();
        }
        Response response(200, "text/plain", "ok");
        co_await exchange.respond(std::move(response));
    });
    loop.run([&]() -> Awaitable<void> {
        auto idle = co_await dial(server.port);
        co_await send(*idle, kGet);
        co_await receive_until(*idle, "ok");
        auto busy = co_await dial(server.port);
        co_await send(*busy, "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
        co_await entered.wait();
        net::Event drained(loop.executor());
        auto drain = [](Server& s, net::Event& end) -> Awaitable<void> {
            co_await s.drain(60s);
            end.notify();
        };
        net::spawn(loop.executor(), drain(server.server, drained), "drain");
        auto rest = co_await receive_all(*idle);
        CHECK(rest.empty());
        auto refused = co_await net::connect_tcp("127.0.0.1", server.port, 5s);
        CHECK_FALSE(refused.has_value());
        CHECK(server.server.open_connections() == 1);
        go_on.notify();
        auto answer = co_await receive_all(*busy);
        CHECK_THAT(answer, EndsWith("ok"));
        CHECK_THAT(answer, Contains("Connection: close\r\n"));
        bool ended = co_await drained.wait_for(10s);
        CHECK(ended);
        CHECK(server.server.open_connections() == 0);
    });
}

TEST_CASE("a drain cuts what outlasts its grace, upgraded connections too",
          "[http][server][drain]") {
    Loop loop;
    auto upgraded = GENERATE(true, false);
    TestServer server(loop, [upgraded](Exchange& exchange) -> Awaitable<void> {
        ResponseHead head(upgraded ? 101 : 200);
        co_await exchange.start(std::move(head));
        if (upgraded) {
            Upgraded connection = exchange.upgrade();
            std::string buffer(16, '\0');
            co_await connection.stream->read_some(buffer);
        } else {
            co_await exchange.client_gone();
        }
    });
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(server.port);
        co_await send(*stream, kGet);
        co_await receive_until(*stream, "\r\n\r\n");
        co_await server.server.drain(5ms);
        CHECK(server.server.open_connections() == 0);
        auto rest = co_await receive_all(*stream);
        CHECK(rest.empty());
    });
}
