#include "agent/process/environment_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

/// Whatever the file holds, every pair can be given to a process.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto lookup = [](std::string_view name) -> std::optional<std::string> {
        if (name.size() % 2 == 0) return std::nullopt;
        return std::string(name.substr(0, 8));
    };
    auto pairs = opensandbox::agent::parse_environment_file(text, lookup);
    if (!opensandbox::agent::check_environment(pairs)) std::abort();
    return 0;
}
