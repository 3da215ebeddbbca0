#include "cli/secret_input.hpp"

#include "base/scope_exit.hpp"
#include "base/unique_fd.hpp"
#include "sdk/stdio/write_fully.hpp"

#include <cerrno>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

namespace opensandbox::cli {

namespace {

constexpr std::size_t kLongest = std::size_t{64} << 10;
constexpr char kInterrupt = 0x03;
constexpr char kEnd = 0x04;
constexpr char kErase = 0x7f;
constexpr char kBackspace = 0x08;
constexpr char kKill = 0x15;

sdk::Error failed(std::string message) {
    return {sdk::ErrorCode::io, 0, "", std::move(message), {}};
}

/// Reads keys until the line ends. Signals are keys here, or the terminal would stay silent when
/// one ends the program.
sdk::Result<std::string> read_keys(int terminal) {
    std::string line;
    while (line.size() < kLongest) {
        char key = 0;
        const ssize_t count = ::read(terminal, &key, 1);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0 || key == '\n' || key == '\r') return line;
        if (key == kInterrupt) {
            return sdk::Error(sdk::ErrorCode::cancelled, 0, "", "interrupted", {});
        }
        if (key == kEnd) {
            if (line.empty()) return line;
        } else if (key == kErase || key == kBackspace) {
            if (!line.empty()) line.pop_back();
        } else if (key == kKill) {
            line.clear();
        } else {
            line += key;
        }
    }
    return failed("the line is too long");
}

}  // namespace

sdk::Result<std::string> ask(std::string_view prompt, bool hidden) {
    UniqueFd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios before{};
    if (!terminal || ::tcgetattr(terminal.get(), &before) != 0) {
        return sdk::Error(sdk::ErrorCode::invalid_argument, 0, "",
                          "there is no terminal to ask at: use --username and --password-stdin",
                          {});
    }
    sdk::write_fully(terminal.get(), prompt);
    if (!hidden) {
        std::string line;
        char key = 0;
        while (::read(terminal.get(), &key, 1) == 1 && key != '\n' && line.size() < kLongest)
            line += key;
        return line;
    }
    termios silent = before;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG);
    silent.c_cc[VMIN] = 1;
    silent.c_cc[VTIME] = 0;
    ::tcsetattr(terminal.get(), TCSAFLUSH, &silent);
    ScopeExit restore([&] { ::tcsetattr(terminal.get(), TCSAFLUSH, &before); });
    auto line = read_keys(terminal.get());
    sdk::write_fully(terminal.get(), "\n");
    return line;
}

sdk::Result<std::string> read_secret() {
    std::string text(kLongest + 1, '\0');
    std::size_t length = 0;
    while (length < text.size()) {
        const ssize_t count = ::read(STDIN_FILENO, text.data() + length, text.size() - length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("standard input cannot be read");
        if (count == 0) break;
        length += static_cast<std::size_t>(count);
    }
    if (length > kLongest) return failed("the password is longer than 64 KiB");
    text.resize(length);
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

}  // namespace opensandbox::cli
