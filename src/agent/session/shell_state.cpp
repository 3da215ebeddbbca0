#include "agent/session/shell_state.hpp"

namespace opensandbox::agent {
namespace {

/// The bytes up to the next NUL, which are taken off the front.
std::optional<std::string_view> take_part(std::string_view& bytes) {
    std::size_t end = bytes.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    return part;
}

}  // namespace

std::optional<ShellState> read_shell_state(std::string_view bytes, std::string_view mark) {
    ShellState state;
    if (take_part(bytes) != mark) return std::nullopt;
    for (std::string* part :
         {&state.directory, &state.flags, &state.last, &state.variables, &state.functions}) {
        auto text = take_part(bytes);
        if (!text) return std::nullopt;
        *part = *text;
    }
    if (take_part(bytes) != mark) return std::nullopt;
    if (state.directory.ends_with('\n')) state.directory.pop_back();
    // The flags become part of a command line: nothing but letters of options may stand there.
    if (!state.directory.starts_with('/') ||
        state.flags.find_first_not_of("euvx") != std::string::npos) {
        return std::nullopt;
    }
    return state;
}

std::string quote_for_shell(std::string_view text) {
    std::string out = "'";
    for (char c : text) {
        if (c == '\'') {
            out += "'\\''";
        } else {
            out += c;
        }
    }
    out += '\'';
    return out;
}

}  // namespace opensandbox::agent
