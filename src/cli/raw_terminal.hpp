#pragma once

#include "opensandbox/error.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace opensandbox::cli {

struct WindowSize {
    std::uint16_t columns = 80;
    std::uint16_t rows = 24;
};

/// The size of the terminal on standard input, output or error; empty when none of them is one.
std::optional<WindowSize> window_size();

/// The terminal on standard input in raw mode: every key comes at once and unchanged, Ctrl-C too.
/// Destruction brings back the mode that was.
class RawTerminal {
  public:
    /// `unsupported` when standard input is no terminal.
    static sdk::Result<std::unique_ptr<RawTerminal>> enter();
    ~RawTerminal();
    RawTerminal(const RawTerminal&) = delete;
    RawTerminal& operator=(const RawTerminal&) = delete;
    /// Brings back the mode that was, now.
    void restore();

  private:
    struct State;
    explicit RawTerminal(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace opensandbox::cli
