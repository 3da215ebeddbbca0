#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <string>
#include <vector>

namespace opensandbox::agent {

/// Version of landlock in this kernel; 0 without.
int landlock_version();

/// A ruleset under which files change only at or below `writable` (paths that are missing are left
/// out) and reading is free: a second wall behind read-only mounts. To be made among the mounts
/// that the paths are of. `unsupported` when the kernel lacks landlock.
Result<UniqueFd> make_landlock(const std::vector<std::string>& writable);

}  // namespace opensandbox::agent
