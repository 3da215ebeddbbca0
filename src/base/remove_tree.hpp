#pragma once

#include "base/error.hpp"

#include <filesystem>

namespace opensandbox {

/// Removes a directory and all below it, however deep: nested directories are first moved up, so
/// that depth costs neither stack nor descriptors. Follows no link. Absent is fine.
Status remove_tree(const std::filesystem::path& directory);

}  // namespace opensandbox
