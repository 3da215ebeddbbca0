#include "cli/raw_terminal.hpp"

#include <sys/ioctl.h>

#include <termios.h>
#include <unistd.h>

namespace opensandbox::cli {

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
