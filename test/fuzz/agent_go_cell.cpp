#include "agent/code/drivers/go_cell.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace opensandbox::agent;

/// Any cell is cut into pieces of itself and made a program.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view code(reinterpret_cast<const char*>(data), size);
    for (const GoPiece& piece : split_go_cell(code)) {
        if (piece.text.empty() || piece.line == 0) std::abort();
    }
    GoProgram program;
    for (std::size_t cell = 1; cell < 3; ++cell) {
        GoProgram::Build build = program.build(code, cell, true);
        if (!build.source.starts_with("package main\n")) std::abort();
        program.keep(build);
    }
    return 0;
}
