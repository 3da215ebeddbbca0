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
