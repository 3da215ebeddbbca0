#pragma once

#include "agent/stream/event_pump.hpp"
#include "base/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// Frames between the agent and an interpreter driver, over a socket that only these two hold (it
/// is not the interpreter's output, so output cannot be taken for frames). A frame is a letter, the
/// payload's size in decimal digits, LF, and the payload.
struct ControlFrame {
    enum class Kind : char {
        message = 'j',      ///< driver to agent: a JSON object, see ControlMessage
        state = 's',        ///< both ways: what a driver wants back when it is started again
        program = 'p',      ///< agent to driver: the driver's own text
        directory = 'd',    ///< agent to driver: change the working directory
        environment = 'e',  ///< agent to driver: "NAME=value" NUL …: all there is from now on
        modules = 'm',      ///< agent to driver: load these, a name a line
        run = 'r',          ///< agent to driver: code to run
    };
    /// Largest payload, bytes.
    static constexpr std::size_t kMaxPayload = std::size_t{16} << 20;

    Kind kind;
    std::string payload;

    /// The letter, the size and LF that go before a payload.
    static std::string header(Kind kind, std::size_t size);
};

/// Cuts a byte stream into frames. Memory is bounded by the largest payload. Pure.
class ControlFrameReader {
  public:
    void feed(std::string_view bytes) { buffer_.append(bytes); }
    /// The next whole frame, empty when more bytes are needed; `protocol` when the bytes are no
    /// frame or one too large, and from then on always.
    Result<std::optional<ControlFrame>> next();

  private:
    std::string buffer_;
};

/// What a driver says about the run in flight.
struct ControlMessage {
    enum class Type : unsigned char { ready, display, result, error, done };
    Type type = Type::ready;
    std::int64_t count = 0;  ///< of `result`: which run of this context it was
    std::string mime;        ///< of `display` and `result`: JSON object, "text" for text/plain
    RunEnd end;              ///< of `error`
    bool leaving = false;    ///< of `done`: the process ends now, and not by accident
};

/// `protocol` when the text is no such message. Pure.
Result<ControlMessage> parse_control_message(std::string_view text);

}  // namespace opensandbox::agent
