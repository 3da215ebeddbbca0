#pragma once

#include "agent/process/environment.hpp"
#include "agent/session/shell_state.hpp"

#include <string>
#include <vector>

namespace opensandbox::agent {

/// What the shell of one run does: take over the session's state, run the text, hand its state on.
/// It reads the program from descriptor 3 and writes its state to descriptor 4, which no process
/// that the text starts can see.
struct ShellProgram {
    ShellKind kind = ShellKind::bash;
    const ShellState* state = nullptr;  ///< null in a session's first run
    std::string directory;              ///< for this run only; absolute without links; may be empty
    Environment::Pairs exports;         ///< variables set after the state; names are identifiers
    std::string text;                   ///< without NUL
    std::string mark;                   ///< a word that nobody can guess

    /// The program's text, for descriptor 3.
    [[nodiscard]] std::string text_for_shell() const;
};

/// Arguments of the shell; they say nothing of what it will run.
std::vector<std::string> shell_arguments(ShellKind kind);

/// Whether a shell can have a variable of this name. Pure.
bool is_identifier(std::string_view name);

}  // namespace opensandbox::agent
