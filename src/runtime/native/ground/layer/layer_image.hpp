#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

/// Writable layers of a fixed size: a file system in a sparse file for each, so that what a sandbox
/// writes ends there, with ENOSPC inside, and touches nobody else's space. (Project quotas would do
/// without, but need a kernel and a file system that have them; a loop device needs neither.)
namespace opensandbox::runtime::native {

/// In a slot's directory: where its file system is mounted, and its file.
inline constexpr const char* kLayerMount = "layer";
inline constexpr const char* kLayerFile = "layer.img";

/// Where the writable layers of a slot are: its directory, or the file system mounted in it.
std::filesystem::path layer_directory(const std::filesystem::path& slot);

/// Makes an empty file system of that size once, for copies: with mkfs.ext4 of the host. Its path.
/// `unsupported` where there is no such program. Blocks.
Result<std::filesystem::path> ensure_layer_template(const std::filesystem::path& state_directory,
                                                    std::uint64_t bytes);

/// Mounts a fresh file system of that size in the slot's directory. Blocks, for some milliseconds.
Status mount_layer(const std::filesystem::path& state_directory, const std::filesystem::path& slot,
                   std::uint64_t bytes);
/// Success also when nothing is mounted. What still uses it keeps it until it ends.
Status unmount_layer(const std::filesystem::path& slot);

/// Bytes used in a slot's own file system; empty when it has none.
std::optional<std::uint64_t> layer_usage(const std::filesystem::path& slot);

/// What lies below a directory, in bytes on the disk. Stops counting at `most` files. Blocks.
std::uint64_t directory_usage(const std::filesystem::path& directory, std::size_t most);

}  // namespace opensandbox::runtime::native
