#pragma once

#include "base/error.hpp"

#include <filesystem>
#include <string_view>

namespace opensandbox {

/// Makes `content` all that the private file (mode 0600) `path` holds, made when there is none. On
/// failure the file is removed.
Status overwrite_file(const std::filesystem::path& path, std::string_view content);

/// Makes `content` the private file (mode 0600) `path`, whole or not at all: it is written to
/// `aside`, on the same filesystem, and renamed. A process that is killed leaves `aside` behind at
/// most. Does not force anything to the disk.
Status replace_file(const std::filesystem::path& path, std::string_view content,
                    const std::filesystem::path& aside);
/// Beside `path`, with ".new" after its name: for files that one writer writes again and again.
Status replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace opensandbox
