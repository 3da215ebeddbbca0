#include "model/warm_program.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Labels of images that say what to start ahead: names that are taken can be imported as they are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto programs = model::parse_warm_programs(text);
    if (!programs) return 0;
    for (const model::WarmProgram& program : *programs) {
        for (const std::string& name : program.imports) {
            if (name.find_first_of(" \n;'\"") != std::string::npos) std::abort();
        }
    }
    return 0;
}
