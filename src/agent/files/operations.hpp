#pragma once

#include "agent/files/permission.hpp"
#include "base/error.hpp"
#include "image/input_stream.hpp"

#include <cstdint>
#include <stop_token>
#include <string>

namespace opensandbox::agent {

/// Renames a file or directory, making the parents of `to` (0755). Across file systems, also those
/// that hide inside one overlay, it copies with modes, owners, times and links, then removes.
/// `not_found` when `from` is missing, `conflict` when `to` exists (execd contract 6.3).
Status move_path(const std::string& from, const std::string& to);

/// Replaces every occurrence of `old_text` (not empty) in a file, which keeps its mode and owner,
/// and returns how many there were. Memory does not depend on the file's size. The file is not
/// touched when there are none. `not_found` when it is missing; `cancelled`, with the file as it
/// was, soon after `stop` asks for it.
Result<std::uint64_t> replace_in_file(const std::string& path, const std::string& old_text,
                                      const std::string& new_text,
                                      const std::stop_token& stop = {});

/// Where an archive goes and what its entries get.
struct UnpackRequest {
    std::string directory;  ///< absolute; made with its parents when missing
    /// Instead of what the archive says. An owner without group brings its login group, or its own
    /// number when it has none. Missing directories above get the owner, too.
    Permission permission;
};

/// Unpacks a tar, plain or compressed with gzip or zstd, over what is there: files and links take
/// the place of others, directories that exist stay as they are. Blocks. `invalid_argument` when it
/// is no such archive, `conflict` when a file would take the place of a directory or the other way
/// round; errors name the entry. What was unpacked before an error stays.
Status unpack_archive(image::InputStream& packed, const UnpackRequest& request);

}  // namespace opensandbox::agent
