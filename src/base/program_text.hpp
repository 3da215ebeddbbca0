#pragma once

#include <span>

namespace opensandbox {

/// The whole pages of this program's code in memory.
std::span<const char> program_text();

}  // namespace opensandbox
