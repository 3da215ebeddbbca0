#pragma once

#include "runtime/runtime.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::native {

/// What the sandboxes use that the spawner of this state directory named, in lines "id serial".
/// Blocks. One that ended meanwhile is left out.
std::vector<SandboxUsage> measure_slots(const std::filesystem::path& state_directory,
                                        std::string_view slots);

}  // namespace opensandbox::runtime::native
