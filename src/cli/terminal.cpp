#include "cli/terminal.hpp"

#include "sdk/stdio/write_fully.hpp"

#include <sys/ioctl.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <termios.h>
#include <unistd.h>

namespace opensandbox::cli {

namespace {

constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kBold = "1";
constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr std::chrono::milliseconds kRefresh{100};

bool environment_allows_color() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return !(no_color && *no_color) && !(term && std::string_view(term) == "dumb");
}

}  // namespace

Terminal::Terminal(bool allow_color)
    : output_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      error_is_terminal_(::isatty(STDERR_FILENO) == 1) {
    const bool color = allow_color && environment_allows_color();
    color_output_ = color && output_is_terminal_;
    color_error_ = color && error_is_terminal_;
}

bool Terminal::print(std::string_view text) {
    clear_progress();
    return sdk::write_fully(STDOUT_FILENO, text);
}

void Terminal::print_error(std::string_view message) {
    clear_progress();
    sdk::write_fully(STDERR_FILENO,
                     paint(color_error_, kRed, "Error:") + " " + std::string(message) + "\n");
}

void Terminal::print_note(std::string_view line) {
    clear_progress();
    sdk::write_fully(STDERR_FILENO, std::string(line) + "\n");
}

void Terminal::show_progress(std::string_view line) {
    if (!error_is_terminal_) return;
    sdk::write_fully(STDERR_FILENO, std::string(kClearLine) + std::string(line));
    progress_shown_ = true;
}

void Terminal::clear_progress() {
    if (!progress_shown_) return;
    sdk::write_fully(STDERR_FILENO, kClearLine);
    progress_shown_ = false;
}

std::string Terminal::paint(bool on, std::string_view code, std::string_view text) const {
    if (!on) return std::string(text);
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Terminal::good(std::string_view text) const {
    return paint(color_output_, kGreen, text);
}

std::string Terminal::strong(std::string_view text) const {
    return paint(color_output_, kBold, text);
}

std::string to_size_text(std::uint64_t bytes) {
    constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit)
        value /= 1000;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
    return text;
}

std::string to_progress_text(std::string_view what, std::uint64_t done, std::uint64_t total,
                             double seconds) {
    std::string text = std::string(what) + "  " + to_size_text(done);
    if (total > 0) {
        const auto percent =
            static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total));
        text += " of " + to_size_text(total) + " (" + std::to_string(percent) + " %)";
    }
    if (seconds > 0.2) {
        text += "  " +
                to_size_text(static_cast<std::uint64_t>(static_cast<double>(done) / seconds)) +
                "/s";
    }
    return text;
}

TransferProgress::TransferProgress(Terminal& terminal, std::string what)
    : terminal_(terminal), what_(std::move(what)) {}

TransferProgress::~TransferProgress() {
    terminal_.clear_progress();
}

void TransferProgress::update(std::uint64_t done, std::uint64_t total) {
    const auto now = Clock::now();
    if (now - shown_ < kRefresh) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    terminal_.show_progress(to_progress_text(what_, done, total, seconds));
}

std::optional<WindowSize> window_size() {
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        struct winsize size{};
        if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) continue;
        WindowSize found;
        found.columns = size.ws_col;
        found.rows = size.ws_row;
        return found;
    }
    return std::nullopt;
}

struct RawTerminal::State {
    struct termios before{};
    bool raw = false;
};

RawTerminal::RawTerminal(std::unique_ptr<State> state) : state_(std::move(state)) {}

RawTerminal::~RawTerminal() {
    restore();
}

void RawTerminal::restore() {
    if (!state_->raw) return;
    state_->raw = false;
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &state_->before);
}

sdk::Result<std::unique_ptr<RawTerminal>> RawTerminal::enter() {
    auto state = std::make_unique<State>();
    if (::tcgetattr(STDIN_FILENO, &state->before) != 0) {
        return sdk::Error(sdk::ErrorCode::unsupported, "standard input is no terminal");
    }
    struct termios raw = state->before;
    ::cfmakeraw(&raw);
    if (::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0) {
        return sdk::Error(sdk::ErrorCode::io, "the terminal refuses raw mode");
    }
    state->raw = true;
    return std::unique_ptr<RawTerminal>(new RawTerminal(std::move(state)));
}

}  // namespace opensandbox::cli
