#include "http/websocket.hpp"

#include "support/http_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::http;
using namespace opensandbox::http::test;

namespace {

RequestHead handshake() {
    Fields fields{{"Connection", "keep-alive, Upgrade"},
                  {"Upgrade", "websocket"},
                  {"Sec-WebSocket-Version", "13"},
                  {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
    return {"GET", "/", fields};
}

}  // namespace

TEST_CASE("a handshake is recognised by all of its parts", "[http][websocket]") {
    CHECK(is_websocket_upgrade(handshake()));
    for (auto name : {"Connection", "Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Key"}) {
        auto request = handshake();
        request.fields.erase(name);
        CHECK_FALSE(is_websocket_upgrade(request));
    }
    auto post = handshake();
    post.method = "POST";
    CHECK_FALSE(is_websocket_upgrade(post));
    auto old = handshake();
    old.fields.set("Sec-WebSocket-Version", "8");
    CHECK_FALSE(is_websocket_upgrade(old));
}

TEST_CASE("the accept value is that of RFC 6455", "[http][websocket]") {
    CHECK(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST_CASE("close frames carry code and a reason cut between characters", "[http][websocket]") {
    CHECK(websocket_close_frame(1011, "no") == std::string("\x88\x04\x03\xF3no"));
    std::string umlauts;
    for (int i = 0; i < 100; ++i)
        umlauts += "\xC3\xA4";
    auto frame = websocket_close_frame(1008, umlauts);
    CHECK(frame.size() == 2 + 2 + 122);
    CHECK(static_cast<unsigned char>(frame[1]) == 124);
    CHECK(websocket_close_frame(1000, std::string(500, 'x')).size() == 2 + 125);
}

TEST_CASE("a failure is told to a WebSocket client by accepting and closing", "[http][websocket]") {
    Loop loop;
    TestServer server(loop, [](Exchange& exchange) -> Awaitable<void> {
        co_await accept_and_close(exchange, 1011, "gone");
    });
    loop.run([&]() -> Awaitable<void> {
        auto stream = co_await dial(server.port);
        co_await send(*stream,
                      "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                      "Sec-WebSocket-Version: 13\r\n"
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
        auto answer = co_await receive_all(*stream);
        CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 101 "));
        CHECK_THAT(answer,
                   Catch::Contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
        CHECK_THAT(answer, Catch::EndsWith("\x88\x06\x03\xF3gone"));
    });
}
