#include "http/websocket_frames.hpp"

#include "base/json_string.hpp"

#include <algorithm>
#include <cstring>

namespace opensandbox::http {
namespace {

constexpr std::size_t kMaxControl = 125;
constexpr std::size_t kMaxReason = kMaxControl - 2;
constexpr unsigned kLength16 = 126;
constexpr unsigned kLength64 = 127;

bool is_continuation_byte(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

void append_big_endian(std::string& out, std::uint64_t value, int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
        out += static_cast<char>(value >> shift & 0xFF);
}

std::uint64_t big_endian(const unsigned char* at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        value = value << 8 | at[i];
    return value;
}

/// Bytes of a header whose second byte is this.
std::size_t header_length(unsigned char second) {
    unsigned length = second & 0x7F;
    std::size_t extended = length == kLength64 ? 8 : length == kLength16 ? 2 : 0;
    return 2 + extended + ((second & 0x80) != 0 ? 4 : 0);
}

bool is_known(unsigned opcode) {
    return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

/// Codes that may be in a close frame (RFC 6455 section 7.4 and its registry).
bool may_be_sent(std::uint16_t code) {
    if (code >= 3000 && code <= 4999) return true;
    return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

}  // namespace

std::string websocket_frame_header(WebSocketOpcode opcode, std::uint64_t size,
                                   const WebSocketMask* mask) {
    std::string out;
    out += static_cast<char>(0x80 | static_cast<unsigned>(opcode));
    unsigned masked = mask != nullptr ? 0x80 : 0;
    if (size <= kMaxControl) {
        out += static_cast<char>(masked | size);
    } else if (size <= 0xFFFF) {
        out += static_cast<char>(masked | kLength16);
        append_big_endian(out, size, 2);
    } else {
        out += static_cast<char>(masked | kLength64);
        append_big_endian(out, size, 8);
    }
    if (mask != nullptr) out.append(mask->begin(), mask->end());
    return out;
}

void apply_websocket_mask(std::span<char> bytes, const WebSocketMask& mask, std::uint64_t offset) {
    std::array<unsigned char, 8> pattern{};
    for (std::size_t i = 0; i < pattern.size(); ++i)
        pattern[i] = mask[(offset + i) & 3];
    std::uint64_t wide = 0;
    std::memcpy(&wide, pattern.data(), sizeof wide);
    std::size_t at = 0;
    for (; at + sizeof wide <= bytes.size(); at += sizeof wide) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, sizeof word);
        word ^= wide;
        std::memcpy(bytes.data() + at, &word, sizeof word);
    }
    for (; at < bytes.size(); ++at)
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ pattern[at & 7]);
}

std::string websocket_close_payload(std::uint16_t code, std::string_view reason) {
    std::string payload;
    if (code == kCloseNoCode) return payload;
    if (reason.size() > kMaxReason) {
        std::size_t cut = kMaxReason;
        while (cut > 0 && is_continuation_byte(reason[cut]))
            --cut;
        reason = reason.substr(0, cut);
    }
    append_big_endian(payload, code, 2);
    payload += reason;
    return payload;
}

Error WebSocketDecoder::broken(std::uint16_t code, const char* rule) {
    violation_ = code;
    return {ErrorCode::protocol, std::string("WebSocket: ") + rule};
}

Result<std::optional<WebSocketEvent>> WebSocketDecoder::feed(std::string_view& bytes) {
    while (true) {
        if (!in_payload_) {
            Result<bool> whole = take_header(bytes);
            if (!whole) return whole.error();
            if (!*whole) return std::optional<WebSocketEvent>();
            if (Status begun = begin_frame(); !begun) return begun.error();
        }
        take_payload(bytes);
        if (frame_.received < frame_.size) return std::optional<WebSocketEvent>();
        in_payload_ = false;
        Result<std::optional<WebSocketEvent>> event = end_frame();
        if (!event || *event) return event;
    }
}

Result<bool> WebSocketDecoder::take_header(std::string_view& bytes) {
    while (true) {
        std::size_t wanted = header_size_ < 2 ? 2 : header_length(header_[1]);
        std::size_t count = std::min(wanted - header_size_, bytes.size());
        std::copy_n(bytes.begin(), count,
                    header_.begin() + static_cast<std::ptrdiff_t>(header_size_));
        header_size_ += count;
        bytes.remove_prefix(count);
        if (header_size_ < wanted) return false;
        if (header_size_ > 2) return true;
        // What the first two bytes tell is refused before anything that follows them is read.
        if (Status checked = check_first_bytes(); !checked) return checked.error();
        if (header_length(header_[1]) == 2) return true;
    }
}

Status WebSocketDecoder::check_first_bytes() {
    unsigned opcode = header_[0] & 0x0F;
    unsigned length = header_[1] & 0x7F;
    if ((header_[0] & 0x70) != 0) return broken(kCloseProtocolError, "a reserved bit is set");
    if (!is_known(opcode)) return broken(kCloseProtocolError, "unknown opcode");
    frame_ = {};
    frame_.final = (header_[0] & 0x80) != 0;
    frame_.opcode = static_cast<WebSocketOpcode>(opcode);
    frame_.masked = (header_[1] & 0x80) != 0;
    if (frame_.masked != (peer_ == Peer::client)) {
        return broken(kCloseProtocolError, frame_.masked ? "a server must not mask its frames"
                                                         : "a client must mask its frames");
    }
    if (frame_.control()) {
        if (!frame_.final) return broken(kCloseProtocolError, "a control frame is fragmented");
        if (length > kMaxControl) return broken(kCloseProtocolError, "a control frame is too long");
        return {};
    }
    bool continues = frame_.opcode == WebSocketOpcode::continuation;
    if (continues && !message_kind_) {
        return broken(kCloseProtocolError, "a continuation without a message");
    }
    if (!continues && message_kind_) {
        return broken(kCloseProtocolError, "a message begins inside another");
    }
    return {};
}

Status WebSocketDecoder::begin_frame() {
    unsigned length = header_[1] & 0x7F;
    frame_.size = length;
    if (length == kLength16) {
        frame_.size = big_endian(header_.data() + 2, 2);
        if (frame_.size < kLength16) return broken(kCloseProtocolError, "a length is padded");
    } else if (length == kLength64) {
        frame_.size = big_endian(header_.data() + 2, 8);
        if (frame_.size <= 0xFFFF) return broken(kCloseProtocolError, "a length is padded");
        if (frame_.size >> 63 != 0) return broken(kCloseProtocolError, "a length is too large");
    }
    if (frame_.masked) std::copy_n(header_.data() + header_size_ - 4, 4, frame_.mask.begin());
    header_size_ = 0;
    in_payload_ = true;
    if (frame_.control()) return {};
    if (frame_.size > max_message_ - message_.size()) {
        return broken(kCloseTooBig, "the message is too large");
    }
    if (frame_.opcode != WebSocketOpcode::continuation) message_kind_ = frame_.opcode;
    return {};
}

void WebSocketDecoder::take_payload(std::string_view& bytes) {
    auto count = static_cast<std::size_t>(
        std::min<std::uint64_t>(frame_.size - frame_.received, bytes.size()));
    std::string& into = frame_.control() ? control_ : message_;
    std::size_t held = into.size();
    into.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (frame_.masked) {
        apply_websocket_mask(std::span(into).subspan(held), frame_.mask, frame_.received);
    }
    frame_.received += count;
}

Result<std::optional<WebSocketEvent>> WebSocketDecoder::end_frame() {
    if (frame_.opcode == WebSocketOpcode::close) {
        Result<WebSocketEvent> event = close_event(std::exchange(control_, {}));
        if (!event) return event.error();
        return std::optional<WebSocketEvent>(std::move(*event));
    }
    if (frame_.control()) {
        WebSocketEvent event(frame_.opcode, std::exchange(control_, {}));
        return std::optional<WebSocketEvent>(std::move(event));
    }
    if (!frame_.final) return std::optional<WebSocketEvent>();
    WebSocketEvent event(*message_kind_, std::exchange(message_, {}));
    message_kind_.reset();
    if (event.opcode == WebSocketOpcode::text && !is_utf8(event.payload)) {
        return broken(kCloseInvalidText, "a text is not UTF-8");
    }
    return std::optional<WebSocketEvent>(std::move(event));
}

Result<WebSocketEvent> WebSocketDecoder::close_event(std::string payload) {
    if (payload.empty()) return WebSocketEvent(WebSocketOpcode::close, {}, kCloseNoCode);
    if (payload.size() == 1) return broken(kCloseProtocolError, "a close code is cut short");
    auto code = static_cast<std::uint16_t>(
        big_endian(reinterpret_cast<const unsigned char*>(payload.data()), 2));
    if (!may_be_sent(code)) return broken(kCloseProtocolError, "a close code must not be sent");
    payload.erase(0, 2);
    if (!is_utf8(payload)) return broken(kCloseInvalidText, "a close reason is not UTF-8");
    return WebSocketEvent(WebSocketOpcode::close, std::move(payload), code);
}

}  // namespace opensandbox::http
