#pragma once

#include "agent/files/permission.hpp"
#include "image/input_stream.hpp"

#include <cstdint>
#include <string>

namespace opensandbox::agent {

/// Where an archive goes and what its entries get.
struct UnpackRequest {
    UnpackRequest() = default;
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
