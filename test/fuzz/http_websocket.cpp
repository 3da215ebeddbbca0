// Feeds bytes in pieces to the WebSocket decoder of either side. What comes out depends on the
// bytes only, never on how they were cut, and keeps the limits.
#include "base/json_string.hpp"
#include "http/websocket_frames.hpp"

#include <cstdint>
#include <cstdlib>
#include <vector>

using namespace opensandbox;

namespace {

constexpr std::size_t kLimit = 4096;

struct Outcome {
    std::vector<http::WebSocketEvent> events;
    std::uint16_t violation = 0;
};

void check(const http::WebSocketEvent& event) {
    if (event.payload.size() > kLimit) std::abort();
    bool control = event.opcode >= http::WebSocketOpcode::close;
    if (control && event.payload.size() > 125) std::abort();
    bool text =
        event.opcode == http::WebSocketOpcode::text || event.opcode == http::WebSocketOpcode::close;
    if (text && !is_utf8(event.payload)) std::abort();
}

Outcome decode(http::WebSocketDecoder::Peer peer, std::string_view bytes, std::size_t piece) {
    http::WebSocketDecoder decoder(peer, kLimit);
    Outcome out;
    while (!bytes.empty()) {
        std::string_view part = bytes.substr(0, piece);
        bytes.remove_prefix(part.size());
        while (!part.empty()) {
            auto event = decoder.feed(part);
            if (!event) {
                out.violation = decoder.violation();
                return out;
            }
            if (!*event) continue;
            check(**event);
            out.events.push_back(std::move(**event));
        }
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    using Peer = http::WebSocketDecoder::Peer;
    Peer peer = (data[0] & 128) != 0 ? Peer::client : Peer::server;
    std::size_t piece = (data[0] & 127) + std::size_t{1};
    std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
    Outcome whole = decode(peer, bytes, size);
    Outcome cut = decode(peer, bytes, piece);
    if (whole.violation != cut.violation || whole.events.size() != cut.events.size()) std::abort();
    for (std::size_t i = 0; i < whole.events.size(); ++i) {
        if (whole.events[i].payload != cut.events[i].payload) std::abort();
        if (whole.events[i].code != cut.events[i].code) std::abort();
    }
    return 0;
}
