#include "agent/pty/terminal.hpp"

#include <sys/ioctl.h>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <termios.h>

namespace opensandbox::agent {
namespace {

constexpr int kFlags = O_RDWR | O_NOCTTY | O_CLOEXEC;

UniqueFd open_master() {
    UniqueFd master(::open("/dev/ptmx", kFlags | O_NONBLOCK));
    // Images without the link, or with a device node that a user namespace cannot open.
    if (!master) master.reset(::open("/dev/pts/ptmx", kFlags | O_NONBLOCK));
    return master;
}

/// By descriptor, which needs no path; else by number.
UniqueFd open_slave(int master) {
    UniqueFd slave(::ioctl(master, TIOCGPTPEER, kFlags));
    unsigned number = 0;
    if (!slave && ::ioctl(master, TIOCGPTN, &number) == 0) {
        slave.reset(::open(("/dev/pts/" + std::to_string(number)).c_str(), kFlags));
    }
    return slave;
}

}  // namespace

Result<Terminal> open_terminal(TerminalSize size) {
    Terminal terminal;
    terminal.master = open_master();
    if (!terminal.master) return Error::from_errno(errno, "open a pseudo-terminal");
    int locked = 0;
    if (::ioctl(terminal.master.get(), TIOCSPTLCK, &locked) != 0) {
        return Error::from_errno(errno, "unlock the pseudo-terminal");
    }
    terminal.slave = open_slave(terminal.master.get());
    if (!terminal.slave) return Error::from_errno(errno, "open the pseudo-terminal's other end");
    termios settings{};
    if (::tcgetattr(terminal.slave.get(), &settings) == 0) {
        // Erasing a character erases all of its bytes.
        settings.c_iflag |= IUTF8;
        ::tcsetattr(terminal.slave.get(), TCSANOW, &settings);
    }
    if (Status sized = resize_terminal(terminal.master.get(), size); !sized) return sized.error();
    return terminal;
}

Status resize_terminal(int master, TerminalSize size) {
    winsize window{};
    window.ws_col = size.columns;
    window.ws_row = size.rows;
    if (::ioctl(master, TIOCSWINSZ, &window) != 0) {
        return Error::from_errno(errno, "resize the terminal");
    }
    return {};
}

}  // namespace opensandbox::agent
