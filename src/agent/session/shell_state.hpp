#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// The shells that sessions know: bash keeps its whole state; any other sh keeps variables,
/// directory, umask and the options of `set`.
enum class ShellKind : unsigned char { bash, posix };

/// All that a shell hands over to the one that goes on after it: texts that a shell of the same
/// kind wrote and reads back. Bytes without NUL, opaque but for the directory.
struct ShellState {
    std::string directory;
    std::string flags;      ///< of "euvx": options that act on whatever else restores the state
    std::string last;       ///< commands that come after all others
    std::string variables;  ///< umask, variables, aliases
    std::string functions;

    [[nodiscard]] std::size_t size() const {
        return directory.size() + flags.size() + last.size() + variables.size() + functions.size();
    }
};

/// What a shell wrote to its state descriptor: `mark`, the parts, `mark`, each ended by NUL. Empty
/// when it is cut short or anything else. Bytes behind the second mark are ignored. Pure.
std::optional<ShellState> read_shell_state(std::string_view bytes, std::string_view mark);

/// `text` as one word of any shell. Pure.
std::string quote_for_shell(std::string_view text);

}  // namespace opensandbox::agent
