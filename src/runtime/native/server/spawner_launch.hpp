#pragma once

#include "base/error.hpp"
#include "runtime/native/records/spawner_options.hpp"

#include <filesystem>

namespace opensandbox::runtime::native {

/// Starts `executable` in the role `spawner`, away from this process: its own session, no
/// descriptor of ours, a log file of its own. Blocks until it serves; the error is its own. Up to
/// 45 s, since an ending spawner of the same state directory is waited for.
Status launch_spawner(const std::filesystem::path& executable, SpawnerOptions options);

/// Makes the spawner that listens at `socket` end without its sandboxes, which the next one adopts.
/// Succeeds when none listens. Blocks until it ended; one that does not is killed after 45 s, which
/// costs no sandbox either.
Status retire_spawner(const std::filesystem::path& socket);

}  // namespace opensandbox::runtime::native
