#pragma once

#include "base/error.hpp"

#include <filesystem>

namespace opensandbox::runtime::native {

/// Whether the host was restarted since a spawner last served this state directory; false when none
/// ever did.
bool restarted_since(const std::filesystem::path& state_directory);

/// Writes down that one serves it under this boot of the kernel. Reaches the disk before it
/// returns.
Status record_boot(const std::filesystem::path& state_directory);

}  // namespace opensandbox::runtime::native
