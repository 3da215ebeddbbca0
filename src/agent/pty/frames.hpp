#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// Frames of a terminal's WebSocket (execd contract 8.2). Pure.
namespace pty {

/// First bytes of binary frames.
inline constexpr char kInput = 0x00;
inline constexpr char kOutput = 0x01;
inline constexpr char kErrorOutput = 0x02;
inline constexpr char kReplay = 0x03;

/// Codes of error frames.
inline constexpr const char* kSessionGone = "SESSION_GONE";
inline constexpr const char* kStartFailed = "START_FAILED";
inline constexpr const char* kStdinWriteFailed = "STDIN_WRITE_FAILED";
inline constexpr const char* kInvalidFrame = "INVALID_FRAME";
inline constexpr const char* kAlreadyConnected = "ALREADY_CONNECTED";
inline constexpr const char* kTakenOver = "TAKEN_OVER";
inline constexpr const char* kReadOnly = "READ_ONLY";
inline constexpr const char* kNotRunning = "NOT_RUNNING";
inline constexpr const char* kTooManyViewers = "TOO_MANY_VIEWERS";

/// What a client's frame asks for.
struct Request {
    enum class Kind : unsigned char { nothing, input, resize, signal, ping, unknown };
    Kind kind;
    std::string data;  ///< the input, or the type that is unknown
    std::uint16_t columns = 0;
    std::uint16_t rows = 0;
    int signal = 0;

    /// Whether it would change what the shell does.
    [[nodiscard]] bool writes() const {
        return kind == Kind::input || kind == Kind::resize || kind == Kind::signal;
    }
};

/// `nothing` for what the contract ignores: other first bytes, unreadable JSON, sizes out of range,
/// unknown signals.
Request parse_binary(std::string bytes);
Request parse_text(std::string_view text);

/// The 9 bytes that a replay frame begins with. `offset` counts all bytes ever written.
std::string replay_head(std::uint64_t offset);
/// JSON text frames, each with its newline.
std::string connected_text(std::string_view session_id, bool terminal, bool viewer);
std::string exit_text(int code);
std::string error_text(std::string_view code, std::string_view message);
std::string pong_text();

}  // namespace pty
}  // namespace opensandbox::agent
