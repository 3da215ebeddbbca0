#include "http/websocket.hpp"

#include "base/base64.hpp"

#include <openssl/evp.h>

#include <array>

namespace opensandbox::http {
namespace {

constexpr std::string_view kAcceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

}  // namespace

bool is_websocket_upgrade(const RequestHead& request) {
    auto key = request.fields.get("Sec-WebSocket-Key");
    return request.method == "GET" && request.minor_version >= 1 &&
           request.fields.has_token("Connection", "upgrade") &&
           request.fields.has_token("Upgrade", "websocket") &&
           request.fields.get("Sec-WebSocket-Version") == std::string_view("13") && key &&
           !key->empty();
}

std::string websocket_accept(std::string_view key) {
    std::string text(key);
    text += kAcceptSuffix;
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1) {
        return {};
    }
    return to_base64({reinterpret_cast<const char*>(digest.data()), size});
}

Awaitable<Status> start_websocket(Exchange& exchange) {
    auto key = exchange.request().fields.get("Sec-WebSocket-Key").value_or("");
    ResponseHead head(101);
    head.fields.add("Upgrade", "websocket");
    head.fields.add("Connection", "Upgrade");
    head.fields.add("Sec-WebSocket-Accept", websocket_accept(key));
    co_return co_await exchange.start(std::move(head));
}

}  // namespace opensandbox::http
