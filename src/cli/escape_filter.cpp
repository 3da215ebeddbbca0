#include "cli/remote_shell.hpp"

namespace opensandbox::cli {

EscapeFilter::Keys EscapeFilter::feed(std::string_view keys) {
    Keys out;
    if (!enabled_) {
        out.send = keys;
        return out;
    }
    for (char key : keys) {
        if (state_ == State::tilde) {
            state_ = State::in_line;
            if (key == '.') {
                out.detach = true;
                return out;
            }
            out.send += '~';
            if (key == '~') continue;
        } else if (state_ == State::line_start && key == '~') {
            state_ = State::tilde;
            continue;
        }
        out.send += key;
        // Ctrl-C and Ctrl-U empty the line that was begun.
        const bool fresh_line = key == '\r' || key == '\n' || key == '\x03' || key == '\x15';
        state_ = fresh_line ? State::line_start : State::in_line;
    }
    return out;
}

}  // namespace opensandbox::cli
