#include "http/websocket_frames.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace opensandbox;
using namespace opensandbox::http;

namespace {

using Peer = WebSocketDecoder::Peer;
constexpr WebSocketMask kMask{0x37, 0xFA, 0x21, 0x3D};

std::string frame_of_client(WebSocketOpcode opcode, std::string payload) {
    std::string head = websocket_frame_header(opcode, payload.size(), &kMask);
    apply_websocket_mask(payload, kMask, 0);
    return head + payload;
}

std::string frame_of_server(WebSocketOpcode opcode, const std::string& payload) {
    return websocket_frame_header(opcode, payload.size(), nullptr) + payload;
}

struct Outcome {
    std::vector<WebSocketEvent> events;
    std::uint16_t violation = 0;
};

/// Feeds `bytes` in pieces of `piece` bytes.
Outcome decode(Peer peer, const std::string& bytes, std::size_t piece, std::size_t limit = 1000) {
    WebSocketDecoder decoder(peer, limit);
    Outcome out;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        std::string_view rest = std::string_view(bytes).substr(at, piece);
        while (!rest.empty()) {
            auto event = decoder.feed(rest);
            if (!event) {
                CHECK(event.error().code() == ErrorCode::protocol);
                out.violation = decoder.violation();
                return out;
            }
            if (*event) out.events.push_back(std::move(**event));
        }
    }
    return out;
}

/// The code that the decoder would close with, the same for every way of cutting the bytes.
std::uint16_t violation(Peer peer, const std::string& bytes, std::size_t limit = 1000) {
    std::uint16_t code = decode(peer, bytes, bytes.size(), limit).violation;
    CHECK(decode(peer, bytes, 1, limit).violation == code);
    return code;
}

std::string bytes(std::initializer_list<int> values) {
    std::string out;
    for (int value : values)
        out += static_cast<char>(value);
    return out;
}

}  // namespace

TEST_CASE("frames come out as they went in, however they are cut", "[http][websocket]") {
    for (std::size_t size : {0, 1, 7, 8, 9, 125, 126, 65535, 65536, 70001}) {
        std::string payload;
        for (std::size_t i = 0; i < size; ++i)
            payload += static_cast<char>(i * 31 + 7);
        for (std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{4096}, size + 20}) {
            CAPTURE(size, piece);
            auto masked = decode(Peer::client, frame_of_client(WebSocketOpcode::binary, payload),
                                 piece, 100'000);
            REQUIRE(masked.events.size() == 1);
            CHECK(masked.events[0].opcode == WebSocketOpcode::binary);
            CHECK(masked.events[0].payload == payload);
            auto plain = decode(Peer::server, frame_of_server(WebSocketOpcode::binary, payload),
                                piece, 100'000);
            REQUIRE(plain.events.size() == 1);
            CHECK(plain.events[0].payload == payload);
        }
    }
}

TEST_CASE("the examples of RFC 6455 are understood", "[http][websocket]") {
    auto masked = bytes({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58});
    CHECK(decode(Peer::client, masked, 2).events.at(0).payload == "Hello");
    auto fragmented = bytes({0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f});
    auto events = decode(Peer::server, fragmented, 1).events;
    REQUIRE(events.size() == 1);
    CHECK(events[0].opcode == WebSocketOpcode::text);
    CHECK(events[0].payload == "Hello");
}

TEST_CASE("a control frame may come between fragments", "[http][websocket]") {
    auto stream = bytes({0x01, 0x01, 'a', 0x89, 0x01, 'p', 0x00, 0x01, 'b', 0x80, 0x00});
    auto events = decode(Peer::server, stream, 1).events;
    REQUIRE(events.size() == 2);
    CHECK(events[0].opcode == WebSocketOpcode::ping);
    CHECK(events[0].payload == "p");
    CHECK(events[1].payload == "ab");
}

TEST_CASE("frames that break a rule are refused with the code for it", "[http][websocket]") {
    SECTION("reserved bits and opcodes") {
        for (int first : {0xC1, 0xA1, 0x91, 0x83, 0x87, 0x8B, 0x8F})
            CHECK(violation(Peer::server, bytes({first, 0x00})) == kCloseProtocolError);
    }
    SECTION("masking is for clients, and only for them") {
        CHECK(violation(Peer::client, bytes({0x81, 0x00})) == kCloseProtocolError);
        CHECK(violation(Peer::server, bytes({0x81, 0x80, 0, 0, 0, 0})) == kCloseProtocolError);
    }
    SECTION("control frames are short and whole") {
        CHECK(violation(Peer::server, bytes({0x09, 0x00})) == kCloseProtocolError);
        CHECK(violation(Peer::server, bytes({0x89, 126, 0, 126})) == kCloseProtocolError);
        CHECK(violation(Peer::server, bytes({0x88, 127})) == kCloseProtocolError);
    }
    SECTION("fragments follow each other") {
        CHECK(violation(Peer::server, bytes({0x80, 0x00})) == kCloseProtocolError);
        CHECK(violation(Peer::server, bytes({0x01, 0x00, 0x81, 0x00})) == kCloseProtocolError);
    }
    SECTION("lengths take the shortest form") {
        CHECK(violation(Peer::server, bytes({0x82, 126, 0, 125})) == kCloseProtocolError);
        CHECK(violation(Peer::server, bytes({0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF})) ==
              kCloseProtocolError);
        CHECK(violation(Peer::server, bytes({0x82, 127, 0x80, 0, 0, 0, 0, 1, 0, 0})) ==
              kCloseProtocolError);
    }
    SECTION("close codes and reasons") {
        CHECK(violation(Peer::server, bytes({0x88, 1, 3})) == kCloseProtocolError);
        for (int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535}) {
            CHECK(violation(Peer::server, bytes({0x88, 2, code >> 8, code & 255})) ==
                  kCloseProtocolError);
        }
        CHECK(violation(Peer::server, bytes({0x88, 3, 0x03, 0xE8, 0xFF})) == kCloseInvalidText);
    }
    SECTION("texts are UTF-8") {
        CHECK(violation(Peer::server, bytes({0x81, 2, 0xC3, 0x28})) == kCloseInvalidText);
        CHECK(violation(Peer::server, bytes({0x81, 3, 0xED, 0xA0, 0x80})) == kCloseInvalidText);
        CHECK(violation(Peer::server, bytes({0x81, 2, 0xC0, 0x80})) == kCloseInvalidText);
        CHECK(violation(Peer::server, bytes({0x81, 1, 0xE2})) == kCloseInvalidText);
    }
}

TEST_CASE("a character may be split between fragments", "[http][websocket]") {
    auto events =
        decode(Peer::server, bytes({0x01, 1, 0xE2, 0x00, 1, 0x82, 0x80, 1, 0xAC}), 1).events;
    REQUIRE(events.size() == 1);
    CHECK(events[0].payload == "\xE2\x82\xAC");
}

TEST_CASE("the size limit is for all fragments together and needs no payload",
          "[http][websocket]") {
    CHECK(violation(Peer::server, bytes({0x82, 11}), 10) == kCloseTooBig);
    CHECK(violation(Peer::server, bytes({0x82, 127, 0x7F, 0, 0, 0, 0, 0, 0, 0}), 10) ==
          kCloseTooBig);
    std::string half = bytes({0x02, 6, 1, 2, 3, 4, 5, 6});
    CHECK(violation(Peer::server, half + bytes({0x80, 5}), 10) == kCloseTooBig);
    CHECK(decode(Peer::server, half + bytes({0x80, 4, 1, 2, 3, 4}), 1, 10).events.size() == 1);
}

TEST_CASE("close frames give their code and reason", "[http][websocket]") {
    auto none = decode(Peer::server, bytes({0x88, 0}), 1).events;
    REQUIRE(none.size() == 1);
    CHECK(none[0].code == kCloseNoCode);
    auto coded =
        decode(Peer::server,
               frame_of_server(WebSocketOpcode::close, websocket_close_payload(4001, "TAKEN_OVER")),
               1)
            .events;
    REQUIRE(coded.size() == 1);
    CHECK(coded[0].code == 4001);
    CHECK(coded[0].payload == "TAKEN_OVER");
    CHECK(websocket_close_payload(kCloseNoCode, "ignored").empty());
}
