#pragma once

#include "runtime/native/spawner/snapshots/snapshot_files.hpp"
#include "runtime/runtime.hpp"

#include <filesystem>
#include <string>

namespace opensandbox::runtime::native {

/// Whether a snapshot, or a sandbox whose spawner wrote it down, stands on this image. Blocks.
bool image_needed(const std::filesystem::path& state_directory, const std::string& digest);

/// What the snapshot consists of. `conflict` when it stands on the host's own /usr. Blocks.
Result<SnapshotContent> snapshot_content(const SnapshotFiles& files, const std::string& id);

}  // namespace opensandbox::runtime::native
