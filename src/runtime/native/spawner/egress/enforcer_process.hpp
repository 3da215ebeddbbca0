#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <filesystem>

namespace opensandbox::runtime::native {

/// Starts this program once more, in the hidden role `enforcer`: it takes messages from `control`
/// and ends with it. It works in `directory`, which is made, as nobody but with power over the
/// network. To be called by one with a single thread.
Result<pid_t> start_enforcer(UniqueFd control, const std::filesystem::path& directory);

/// The hidden role `enforcer`: egress control of a spawner's sandboxes, started by it.
int enforcer_main(int argc, char** argv);

/// Its life (enforcer_service.cpp): does what the spawner says on `control`, until that ends. The
/// exit code; 1 also when it cannot enforce, which the spawner is told.
int serve_enforcer(UniqueFd control);

}  // namespace opensandbox::runtime::native
