#pragma once

#include "cli/command_table.hpp"
#include "json/document.hpp"
#include "opensandbox/error.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::cli {

/// Standard output and error of this process: results on the one, all else on the other.
class Terminal {
  public:
    /// Colours only on terminals, and not when NO_COLOR is set or `allow_color` is false.
    explicit Terminal(bool allow_color);

    [[nodiscard]] bool output_is_terminal() const { return output_is_terminal_; }
    [[nodiscard]] bool error_is_terminal() const { return error_is_terminal_; }

    /// Writes a result; false when the reader is gone.
    bool print(std::string_view text);
    /// One line on standard error, with its first word coloured.
    void print_error(std::string_view message);
    void print_note(std::string_view line);

    /// A single line on standard error that is overwritten; nothing unless that is a terminal.
    void show_progress(std::string_view line);
    void clear_progress();

    [[nodiscard]] std::string good(std::string_view text) const;
    [[nodiscard]] std::string strong(std::string_view text) const;

  private:
    [[nodiscard]] std::string paint(bool on, std::string_view code, std::string_view text) const;

    bool output_is_terminal_;
    bool error_is_terminal_;
    bool color_output_;
    bool color_error_;
    bool progress_shown_ = false;
};

/// "12.3 MB" (powers of ten).
std::string to_size_text(std::uint64_t bytes);

/// The progress line of a transfer, refreshed ten times a second at most.
class TransferProgress {
  public:
    TransferProgress(Terminal& terminal, std::string what);
    ~TransferProgress();
    TransferProgress(const TransferProgress&) = delete;
    TransferProgress& operator=(const TransferProgress&) = delete;
    void update(std::uint64_t done, std::uint64_t total);

  private:
    using Clock = std::chrono::steady_clock;
    Terminal& terminal_;
    std::string what_;
    Clock::time_point started_ = Clock::now();
    Clock::time_point shown_{};
};

/// The text of a transfer's progress: "PATH  1.0 MB of 4.0 MB (25 %)  2.0 MB/s".
std::string to_progress_text(std::string_view what, std::uint64_t done, std::uint64_t total,
                             double seconds);

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
