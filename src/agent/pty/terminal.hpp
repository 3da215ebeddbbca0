#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>

namespace opensandbox::agent {

/// Columns and rows of a terminal.
struct TerminalSize {
    constexpr TerminalSize(std::uint16_t c, std::uint16_t r) : columns(c), rows(r) {}
    std::uint16_t columns;
    std::uint16_t rows;
};

/// Both ends of a pseudo-terminal: the agent's and the process's.
struct Terminal {
    UniqueFd master;
    UniqueFd slave;
};

/// Opens one of `size`, for UTF-8. Fails where the sandbox has no devpts or no terminal is left.
Result<Terminal> open_terminal(TerminalSize size);

/// Sets the size; the foreground processes get SIGWINCH when it changed.
Status resize_terminal(int master, TerminalSize size);

}  // namespace opensandbox::agent
