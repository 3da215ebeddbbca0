#pragma once

#include "runtime/native/spawner/snapshots/snapshot_files.hpp"
#include "runtime/runtime.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// What the server reads on this host by itself, where the spawner need not do it.
namespace opensandbox::runtime::native {

/// Whether a snapshot, or a sandbox whose spawner wrote it down, stands on this image. Blocks.
bool image_needed(const std::filesystem::path& state_directory, const std::string& digest);

/// What the snapshot consists of. `conflict` when it stands on the host's own /usr. Blocks.
Result<SnapshotContent> snapshot_content(const SnapshotFiles& files, const std::string& id);

/// What the sandboxes use that the spawner of this state directory named, in lines "id serial".
/// Blocks. One that ended meanwhile is left out.
std::vector<SandboxUsage> measure_slots(const std::filesystem::path& state_directory,
                                        std::string_view slots);

/// The lines of an output log ("<RFC 3339> <text>\n") that a query wants. A line whose time cannot
/// be read belongs to the one before it. Pure.
std::string select_lines(std::string_view log, const LogQuery& query);

}  // namespace opensandbox::runtime::native
