#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// Overlay mounts built outside of a slot and handed in as descriptors.
namespace opensandbox::runtime::native {

/// A detached copy of the mount that `directory` lies on, rooted there, without what is mounted
/// below. With `user_namespace` >= 0 ids on it are shifted into that namespace; io
/// (EINVAL) where the file system cannot do so.
Result<UniqueFd> clone_tree(const std::filesystem::path& directory, int user_namespace);

/// One overlay.
struct OverlaySpec {
    std::span<const std::string> lowers;  ///< directories, uppermost first
    int user_namespace = -1;              ///< of the slot; -1 leaves ids as they are
    bool shift_lowers = true;             ///< false where the lowers' file system cannot shift
    int base = -1;                        ///< the slot's directory, as clone_tree gave it
    const char* upper = "u";              ///< in base
    const char* work = "w";
    std::uint32_t id_base = 0;  ///< host id of the slot's root
    /// Notes of overlayfs are user.* attributes: all that one in a user namespace may write.
    bool user_attributes = false;
};

/// A mount that is attached nowhere yet.
struct Overlay {
    UniqueFd mount;
    /// What it was made of. Nobody needs it any more, but closing takes up to two milliseconds: to
    /// be dropped when nobody waits.
    std::vector<UniqueFd> scaffold;
};

/// The caller's process must have one thread: it acts with the file-system ids of the slot
/// meanwhile, or the overlay would be silently read-only. An overlay that came out so all the same
/// is an error: `resource_exhausted` where the disk is full.
Result<Overlay> build_overlay(const OverlaySpec& spec);

/// Keeps capabilities when file-system ids change. Needed once a process before build_overlay().
Status keep_capabilities_over_id_changes();

}  // namespace opensandbox::runtime::native
