#pragma once

#include "base/error.hpp"

#include <filesystem>

namespace opensandbox::runtime::native {

/// Sandboxes mount a /proc of their own, which the kernel allows in a user namespace only where
/// another is visible whole. Containers cover parts of theirs: then this process gets mounts of its
/// own, with a whole one on `directory`, which is made when it is missing. permission_denied where
/// that may not be done either. Leaves everything as it is where nothing is covered. The caller
/// must have one thread.
Status ensure_visible_proc(const std::filesystem::path& directory);

}  // namespace opensandbox::runtime::native
