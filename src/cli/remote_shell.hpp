#pragma once

#include "cli/invocation.hpp"
#include "opensandbox/pty.hpp"

#include <string>
#include <string_view>

namespace opensandbox::cli {

struct ShellRequest {
    std::string session;         ///< which was made before
    std::string attach_command;  ///< what a user types to come back to it
    bool replay = false;         ///< show what it wrote before, too
    bool escapes = true;         ///< `~.` detaches
    bool view = false;           ///< only shows what happens there: keys but `~.` do nothing
};

/// Connects the terminal of this process with a session until its shell ends, the user detaches or
/// another client takes over. A connection that breaks is made again for half a minute. Returns the
/// shell's exit code; the session is removed when its shell has ended, unless it was only viewed.
Awaitable<Outcome> run_remote_shell(Invocation& invocation, sdk::Terminals terminals,
                                    ShellRequest request);

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
