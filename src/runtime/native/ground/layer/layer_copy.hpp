#pragma once

#include "base/error.hpp"

#include <sys/stat.h>

#include <filesystem>

namespace opensandbox::runtime::native {

/// Directories nested deeper than this are refused: each level costs two descriptors.
inline constexpr std::size_t kMaxLayerDepth = 2'000;

/// What a copy need not keep apart.
enum class LayerFiles : bool {
    copied,
    linked,  ///< files get another name where they can; for layers that never change. No sockets.
};

/// Copies a writable layer of an overlay to `to`, which must not exist, so that it serves as a
/// lower: owners, modes, times, hard links, holes, whiteouts and extended attributes are kept, but
/// those by which overlayfs remembers where a file of the writable layer came from. Shares the data
/// where the file system can. Follows no link and leaves the file system of `from` never. Nobody
/// may write to `from` meanwhile. On failure the caller removes what is there. Blocks.
Status copy_layer(const std::filesystem::path& from, const std::filesystem::path& to,
                  LayerFiles files = LayerFiles::copied);

/// A part of it: copies the content of regular files, in the cheapest way that works between two
/// file systems.
class FileCopy {
  public:
    /// `info` is of `from`; `to` is empty. Holes stay holes.
    Status content(int from, int to, const struct stat& info);

  private:
    Status range(int from, int to, off_t begin, off_t end);

    // What the file systems refused once is not tried again.
    bool reflink_ = true;
    bool in_kernel_ = true;
};

/// Owner, mode, extended attributes and times; `path` is for messages.
Status copy_attributes(int from, int to, const struct stat& info, const std::string& path);

}  // namespace opensandbox::runtime::native
