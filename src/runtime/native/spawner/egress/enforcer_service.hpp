#pragma once

#include "base/unique_fd.hpp"

namespace opensandbox::runtime::native {

/// In the enforcer's process: does what the spawner says on `control`, until that ends. The exit
/// code; 1 also when it cannot enforce, which the spawner is told.
int serve_enforcer(UniqueFd control);

}  // namespace opensandbox::runtime::native
