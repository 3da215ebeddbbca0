#pragma once

#include <optional>
#include <string>

namespace opensandbox::agent {

/// A regular file of at most 16 MiB; empty when it cannot be read. Blocks.
std::optional<std::string> read_file(const std::string& path);

/// Writes a file whole or not at all, for all to read; false when that cannot be. Blocks.
bool write_public(const std::string& path, const std::string& text);

}  // namespace opensandbox::agent
