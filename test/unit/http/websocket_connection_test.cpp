#include "http/websocket_connection.hpp"

#include "http/websocket_frames.hpp"
#include "net/task.hpp"
#include "support/http_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::http;
using namespace opensandbox::http::test;

namespace {

using Kind = WebSocketMessage::Kind;
using Connection = std::unique_ptr<WebSocketConnection>;

/// Sends back every message until the client closes.
Awaitable<void> echo(Exchange& exchange) {
    auto socket = co_await accept_websocket(exchange);
    if (!socket) co_return;
    while (true) {
        auto message = co_await (*socket)->receive();
        if (!message || message->kind == Kind::close) co_return;
        if (message->kind == Kind::text) {
            co_await (*socket)->send_text(message->data);
        } else {
            co_await (*socket)->send_binary(message->data);
        }
    }
}

Awaitable<Connection> open(Client& client, std::uint16_t port) {
    auto socket = co_await connect_websocket(client, Origin("127.0.0.1", port), "/chat");
    if (!socket) throw std::runtime_error(socket.error().message());
    co_return std::move(*socket);
}

constexpr std::string_view kHandshake =
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// The frames that a server sends back for raw bytes after the handshake, to the end.
Awaitable<std::string> answer_to(std::uint16_t port, std::string frames) {
    auto stream = co_await dial(port);
    co_await send(*stream, kHandshake);
    std::string head = co_await receive_until(*stream, "\r\n\r\n");
    co_await send(*stream, frames);
    co_return co_await receive_all(*stream);
}

/// Connects to a peer that answers the handshake with `answer`.
Awaitable<void> expect_refusal(std::string answer) {
    auto executor = co_await asio::this_coro::executor;
    auto listener = net::listen_tcp(executor, "127.0.0.1", 0);
    auto port = (*listener)->port();
    auto shared = std::shared_ptr<net::Listener>(std::move(*listener));
    auto serve = [](std::shared_ptr<net::Listener> from, std::string text) -> Awaitable<void> {
        auto stream = co_await from->accept();
        co_await receive_until(**stream, "\r\n\r\n");
        co_await send(**stream, text);
    };
    net::spawn(executor, serve(shared, std::move(answer)), "scripted peer");
    Client client(executor);
    auto socket = co_await connect_websocket(client, Origin("127.0.0.1", port), "/");
    REQUIRE(!socket);
    CHECK(socket.error().code() == ErrorCode::bad_gateway);
}

}  // namespace

TEST_CASE("messages of both kinds and any size come back whole", "[http][websocket]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        Client client(loop.executor());
        auto socket = co_await open(client, server.port);
        std::string large;
        for (int i = 0; i < 3'000'000; ++i)
            large += static_cast<char>(i * 7 + i / 256);
        for (const std::string& payload : {std::string(), std::string("x"), large}) {
            co_await socket->send_binary(payload);
            auto back = co_await socket->receive();
            REQUIRE(back.has_value());
            CHECK(back->kind == Kind::binary);
            CHECK((back->data == payload));
        }
        co_await socket->send_text("\xE2\x82\xAC");
        auto text = co_await socket->receive();
        REQUIRE(text.has_value());
        CHECK(text->kind == Kind::text);
        CHECK(text->data == "\xE2\x82\xAC");
        auto sent = co_await socket->close(4001, "done");
        CHECK(sent.has_value());
        auto closed = co_await socket->receive();
        REQUIRE(closed.has_value());
        CHECK(closed->kind == Kind::close);
        CHECK(closed->code == 4001);
        auto after = co_await socket->receive();
        CHECK(!after);
        auto late = co_await socket->send_text("late");
        CHECK(!late);
    });
}

TEST_CASE("many senders take turns and no frame is torn", "[http][websocket]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        Client client(loop.executor());
        auto socket = co_await open(client, server.port);
        constexpr int kSenders = 20;
        auto send_one = [](WebSocketConnection& to, int number) -> Awaitable<void> {
            std::string payload(200'000, static_cast<char>('a' + number));
            co_await to.send_text(payload);
        };
        for (int i = 0; i < kSenders; ++i)
            net::spawn(loop.executor(), send_one(*socket, i), "sender");
        for (int i = 0; i < kSenders; ++i) {
            auto message = co_await socket->receive();
            REQUIRE(message.has_value());
            CHECK((message->data == std::string(200'000, static_cast<char>('a' + i))));
        }
    });
}

TEST_CASE("a ping is answered with its payload and noticed as life", "[http][websocket]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        WebSocketMask mask{};
        std::string frames = websocket_frame_header(WebSocketOpcode::ping, 2, &mask) + "hi" +
                             websocket_frame_header(WebSocketOpcode::close, 2, &mask) + "\x03\xE8";
        auto answer = co_await answer_to(server.port, frames);
        // The pong may be left out once the close has come.
        CHECK_THAT(answer, Catch::EndsWith("\x88\x02\x03\xE8"));
        Client client(loop.executor());
        auto socket = co_await open(client, server.port);
        auto before = socket->last_heard();
        co_await socket->ping();
        co_await socket->send_text("x");
        auto message = co_await socket->receive();
        REQUIRE(message.has_value());
        CHECK(socket->last_heard() > before);
    });
}

TEST_CASE("a server's ping is answered while its client receives", "[http][websocket]") {
    Loop loop;
    bool heard = false;
    TestServer server(loop, [&](Exchange& exchange) -> Awaitable<void> {
        auto socket = co_await accept_websocket(exchange);
        auto before = (*socket)->last_heard();
        co_await (*socket)->ping();
        // Nothing but the pong comes until the client closes.
        auto closed = [](WebSocketConnection& from) -> Awaitable<void> { co_await from.receive(); };
        net::spawn(loop.executor(), closed(**socket), "reader");
        while ((*socket)->last_heard() == before)
            co_await net::sleep_for(std::chrono::milliseconds(2));
        heard = true;
        co_await (*socket)->close(1000, "heard");
    });
    loop.run([&]() -> Awaitable<void> {
        Client client(loop.executor());
        auto socket = co_await open(client, server.port);
        auto message = co_await socket->receive();
        REQUIRE(message.has_value());
        CHECK(message->kind == Kind::close);
        CHECK(message->data == "heard");
        CHECK(heard);
    });
}

TEST_CASE("a server closes with the code of the rule that was broken", "[http][websocket]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        auto unmasked = co_await answer_to(server.port, std::string("\x81\x01x"));
        CHECK_THAT(unmasked, Catch::StartsWith("\x88") && Catch::Contains("\x03\xEA"));
        // What the peer had still to say does not keep it from hearing that.
        auto more = co_await answer_to(server.port, "\x81\x01x" + std::string(500'000, 'y'));
        CHECK_THAT(more, Catch::StartsWith("\x88") && Catch::Contains("\x03\xEA"));
        auto no_text =
            co_await answer_to(server.port, std::string("\x81\x82\x00\x00\x00\x00\xC3\x28", 8));
        CHECK_THAT(no_text, Catch::StartsWith("\x88") && Catch::Contains("\x03\xEF"));
        auto huge = co_await answer_to(
            server.port,
            std::string("\x82\xFF\x00\x00\x00\x00\x7F\x00\x00\x00\x00\x00\x00\x00", 14));
        CHECK_THAT(huge, Catch::StartsWith("\x88") && Catch::Contains("\x03\xF1"));
    });
}

TEST_CASE("bytes that came along with the handshake are the first message", "[http][websocket]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        WebSocketMask mask{};
        std::string frames = websocket_frame_header(WebSocketOpcode::text, 5, &mask) + "early" +
                             websocket_frame_header(WebSocketOpcode::close, 0, &mask);
        auto answer = co_await talk(server.port, std::string(kHandshake) + frames);
        CHECK_THAT(answer, Catch::EndsWith(std::string("\x81\x05"
                                                       "early\x88\x00",
                                                       9)));
    });
}

TEST_CASE("aborting ends what is in flight", "[http][websocket]") {
    Loop loop;
    TestServer server(loop, echo);
    loop.run([&]() -> Awaitable<void> {
        Client client(loop.executor());
        auto socket = co_await open(client, server.port);
        auto abort_later = [](WebSocketConnection& which) -> Awaitable<void> {
            co_await net::sleep_for(std::chrono::milliseconds(5));
            which.abort();
        };
        net::spawn(loop.executor(), abort_later(*socket), "abort");
        auto message = co_await socket->receive();
        REQUIRE(!message);
        CHECK(message.error().code() == ErrorCode::cancelled);
        auto sent = co_await socket->send_text("x");
        REQUIRE(!sent);
        CHECK(sent.error().code() == ErrorCode::cancelled);
    });
}

TEST_CASE("a connection that ends without a close frame is broken", "[http][websocket]") {
    Loop loop;
    TestServer server(
        loop, [](Exchange& exchange) -> Awaitable<void> { co_await accept_websocket(exchange); });
    loop.run([&]() -> Awaitable<void> {
        Client client(loop.executor());
        auto socket = co_await open(client, server.port);
        auto message = co_await socket->receive();
        REQUIRE(!message);
        CHECK(message.error().code() == ErrorCode::bad_gateway);
    });
}

TEST_CASE("a client refuses a server that does not agree", "[http][websocket]") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        co_await expect_refusal("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        co_await expect_refusal(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
        co_await expect_refusal(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
            "Upgrade\r\n\r\n");
        co_await expect_refusal(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
    });
}
