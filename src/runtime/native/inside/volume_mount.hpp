#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "runtime/native/records/protocol.hpp"

namespace opensandbox::runtime::native {

/// The mount of a volume, attached nowhere yet: ids are shifted into `user_namespace` unless that
/// is -1, so that who is 0 inside is 0 on the host; without device nodes and set-id programs. A
/// `sub_path` is made when it is missing and may not lead out of the source. What is mounted below
/// the source stays outside.
Result<UniqueFd> make_volume_mount(const VolumeMount& volume, int user_namespace);

/// In the slot: a file system in memory of the volume's size, attached nowhere yet, that everybody
/// may write to.
Result<UniqueFd> make_memory_mount(const VolumeMount& volume);

/// In the slot: attaches it below `root`, the sandbox's root, as if that were "/". Missing parts of
/// the mount path are made.
Status attach_volume(int root, const VolumeMount& volume, UniqueFd mount);

}  // namespace opensandbox::runtime::native
