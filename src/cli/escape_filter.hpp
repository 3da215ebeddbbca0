#pragma once

#include <string>
#include <string_view>

namespace opensandbox::cli {

/// Finds the escapes of an interactive shell among the keystrokes: `~.` at the beginning of a line
/// detaches, `~~` is one tilde. A tilde anywhere else, or before another key, goes through. Pure.
class EscapeFilter {
  public:
    explicit EscapeFilter(bool enabled = true) : enabled_(enabled) {}

    struct Keys {
        std::string send;
        bool detach = false;  ///< what came behind it is dropped
    };
    /// Keystrokes in pieces of any size. A tilde that may begin an escape waits for the next key.
    Keys feed(std::string_view keys);

  private:
    enum class State : unsigned char { line_start, in_line, tilde };
    bool enabled_;
    State state_ = State::line_start;
};

}  // namespace opensandbox::cli
