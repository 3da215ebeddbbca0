#include "base/program_text.hpp"

#include <cstdint>
#include <unistd.h>

/// Where the code begins and ends, by the linker.
extern "C" const char __executable_start;  // NOLINT(bugprone-reserved-identifier)
extern "C" const char etext;

namespace opensandbox {

std::span<const char> program_text() {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const char* begin = &__executable_start;
    const char* end = &etext;
    begin += (page - reinterpret_cast<std::uintptr_t>(begin) % page) % page;
    end -= reinterpret_cast<std::uintptr_t>(end) % page;
    if (begin >= end) return {};
    return {begin, end};
}

}  // namespace opensandbox
