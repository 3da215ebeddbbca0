#pragma once

#include "base/error.hpp"

#include <filesystem>
#include <string>

namespace opensandbox::kube {

/// The content of a file of at most 1 MiB. `not_found`, `too_large` and others name it. Blocks.
Result<std::string> read_small_file(const std::filesystem::path& path);
/// The same without the white space at both ends. Blocks.
Result<std::string> read_small_word(const std::filesystem::path& path);

}  // namespace opensandbox::kube
