#pragma once

#include "base/error.hpp"

#include <filesystem>

namespace opensandbox::runtime::native {

/// Removes a directory with all in it; success when there is none. Follows no links, stays on one
/// descriptor per level and bounds the levels, since what a sandbox leaves behind may be nested
/// deeper than any path or descriptor table allows.
Status remove_tree(const std::filesystem::path& path);

}  // namespace opensandbox::runtime::native
