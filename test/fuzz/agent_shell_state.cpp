#include "agent/session/shell_state.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace opensandbox::agent;

/// Whatever stands in the state descriptor, no part of a state holds NUL, and what was read from a
/// well-formed one is what was written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto state = read_shell_state(text, "m");
    if (!state) return 0;
    for (const std::string* part :
         {&state->directory, &state->flags, &state->last, &state->variables, &state->functions}) {
        if (part->find('\0') != std::string::npos) std::abort();
    }
    std::string again = "m";
    for (const std::string& part :
         {state->directory + "\n", state->flags, state->last, state->variables, state->functions}) {
        again += '\0' + part;
    }
    again += std::string_view("\0m\0", 3);
    auto second = read_shell_state(again, "m");
    if (!second || second->directory != state->directory || second->functions != state->functions) {
        std::abort();
    }
    return 0;
}
