#pragma once

#include "base/error.hpp"

#include <string>

namespace opensandbox::agent {

/// Renames a file or directory, making the parents of `to` (0755). Across file systems, also those
/// that hide inside one overlay, it copies with modes, owners, times and links, then removes.
/// `not_found` when `from` is missing, `conflict` when `to` exists (execd contract 6.3).
Status move_path(const std::string& from, const std::string& to);

}  // namespace opensandbox::agent
