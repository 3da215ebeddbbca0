#pragma once

#include "base/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox::http {

/// Close codes of RFC 6455 section 7.4.1 that this code sends or reports.
inline constexpr std::uint16_t kCloseNormal = 1000;
inline constexpr std::uint16_t kCloseGoingAway = 1001;
inline constexpr std::uint16_t kCloseProtocolError = 1002;
inline constexpr std::uint16_t kCloseNoCode = 1005;  ///< never on the wire
inline constexpr std::uint16_t kCloseInvalidText = 1007;
inline constexpr std::uint16_t kCloseTooBig = 1009;

enum class WebSocketOpcode : unsigned char {
    continuation = 0,
    text = 1,
    binary = 2,
    close = 8,
    ping = 9,
    pong = 10,
};

using WebSocketMask = std::array<unsigned char, 4>;

/// The head of one whole (unfragmented) frame; its payload follows, masked when `mask` is given.
std::string websocket_frame_header(WebSocketOpcode opcode, std::uint64_t size,
                                   const WebSocketMask* mask);

/// Applies a mask to bytes that begin `offset` bytes into the payload. Its own inverse.
void apply_websocket_mask(std::span<char> bytes, const WebSocketMask& mask, std::uint64_t offset);

/// What a close frame holds; `reason` is cut to 123 bytes at a character boundary. Empty for
/// kCloseNoCode.
std::string websocket_close_payload(std::uint16_t code, std::string_view reason);

/// A whole message or a control frame.
struct WebSocketEvent {
    WebSocketEvent(WebSocketOpcode o, std::string p, std::uint16_t c = 0)
        : opcode(o), payload(std::move(p)), code(c) {}
    WebSocketOpcode opcode;  ///< never `continuation`
    std::string payload;     ///< of a close: its reason
    std::uint16_t code;      ///< of a close: kCloseNoCode when it carried none
};

/// Turns the bytes of one side of a connection into messages, in pieces of any size. Keeps what
/// RFC 6455 demands: no reserved bits or opcodes, control frames short and whole, lengths in their
/// shortest form, masking from clients and only from them, UTF-8 in texts and reasons, codes that
/// may be sent. Pure.
class WebSocketDecoder {
  public:
    enum class Peer : unsigned char { client, server };
    /// `max_message`, bytes: of all fragments of one message together.
    WebSocketDecoder(Peer peer, std::size_t max_message) : peer_(peer), max_message_(max_message) {}

    /// Consumes `bytes` from the front up to the end of the next message or control frame. Empty
    /// when all was consumed and more is needed. `protocol` when a rule is broken; then
    /// violation() is the code to close with and nothing may be fed any more.
    Result<std::optional<WebSocketEvent>> feed(std::string_view& bytes);
    [[nodiscard]] std::uint16_t violation() const { return violation_; }

  private:
    struct Frame {
        bool final = false;
        WebSocketOpcode opcode = WebSocketOpcode::continuation;
        bool masked = false;
        WebSocketMask mask{};
        std::uint64_t size = 0;
        std::uint64_t received = 0;

        [[nodiscard]] bool control() const { return opcode >= WebSocketOpcode::close; }
    };

    Error broken(std::uint16_t code, const char* rule);
    /// Collects header bytes; true when the frame's head is whole.
    Result<bool> take_header(std::string_view& bytes);
    Status check_first_bytes();
    Status begin_frame();
    void take_payload(std::string_view& bytes);
    Result<std::optional<WebSocketEvent>> end_frame();
    Result<WebSocketEvent> close_event(std::string payload);

    Peer peer_;
    std::size_t max_message_;
    std::array<unsigned char, 14> header_{};
    std::size_t header_size_ = 0;
    bool in_payload_ = false;
    Frame frame_;
    std::optional<WebSocketOpcode> message_kind_;  ///< of a message whose end has not come
    std::string message_;
    std::string control_;
    std::uint16_t violation_ = 0;
};

}  // namespace opensandbox::http
