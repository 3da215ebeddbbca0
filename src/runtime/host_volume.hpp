#pragma once

#include "base/error.hpp"
#include "model/volume.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Directories of the server's host as volumes, the same for every backend on this host
/// (lifecycle 2.8).
namespace opensandbox::runtime {

/// storage.allowed_host_paths: absolute paths; host volumes lie in one of them. Empty refuses all.
using AllowedHostPaths = std::vector<std::string>;

/// The rules that need no look at the disk: absolute, no `..` component, no `//`, no trailing `/`
/// (VOLUME::INVALID_HOST_PATH), `sub_path` relative and without `..` (VOLUME::INVALID_SUB_PATH),
/// and path with sub_path equal to or below an entry of `allowed` (VOLUME::HOST_PATH_NOT_ALLOWED).
/// All `invalid_argument`, naming the volume. Pure.
Status check_host_volume(const model::Volume& volume, const AllowedHostPaths& allowed);

/// What to mount: the real path of an existing directory or regular file, without symbolic links.
/// Checks the rules above; then that links lead neither out of `allowed` nor out of the volume's
/// own path; makes missing directories (mode 0755; VOLUME::HOST_PATH_CREATE_FAILED when it cannot).
/// Blocks.
Result<std::string> resolve_host_volume(const model::Volume& volume,
                                        const AllowedHostPaths& allowed);

/// Whether users of this host could get rights of the owner of a program below `path`: its mount
/// heeds set-id bits, and every directory on the way lets others than root in. Blocks.
bool lends_rights(const std::string& path);

/// Whether the absolute normal path `path` is `directory` or below it. Pure.
bool is_within(std::string_view path, std::string_view directory);

/// Relative, no `..` component, no NUL: the rule of every backend's sub_path. Pure.
bool is_valid_sub_path(std::string_view sub_path);

}  // namespace opensandbox::runtime
