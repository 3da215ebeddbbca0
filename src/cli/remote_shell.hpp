#pragma once

#include "cli/invocation.hpp"
#include "opensandbox/pty.hpp"

#include <string>

namespace opensandbox::cli {

struct ShellRequest {
    ShellRequest() = default;
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

}  // namespace opensandbox::cli
