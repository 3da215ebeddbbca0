#pragma once

#include "base/error.hpp"

#include <filesystem>

namespace opensandbox::runtime::native {

/// Which kind of overlay is wanted.
struct OverlayKind {
    bool shift_upper = true;       ///< ids of the writable layer are shifted into a user namespace
    bool shift_lower = true;       ///< those of the layer below
    bool user_attributes = false;  ///< notes of overlayfs go where ordinary users may write
};

/// Whether an overlay with its writable layer in `directory` and a lower in `lower` can be built
/// here: builds one and throws it away. The conditions are those of build_overlay().
Status try_overlay(const std::filesystem::path& directory, const std::filesystem::path& lower,
                   const OverlayKind& kind);

}  // namespace opensandbox::runtime::native
