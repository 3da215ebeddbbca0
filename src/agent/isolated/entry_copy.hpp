#pragma once

#include "base/error.hpp"

#include <sys/stat.h>

#include <string>

namespace opensandbox::agent {

/// Copies an entry that is no directory to the same name in another directory, replacing what is
/// there at once. Blocks.
Status copy_entry(int from, int to, const std::string& name, const struct stat& info);

/// A further name for the file at `path` below `root`, replacing what is there at once.
Status link_entry(int root, const std::string& path, int to, const std::string& name);

/// Owner, mode, times and extended attributes (not those of overlays) of an open file or directory.
Status copy_attributes(int from, int to, const struct stat& info);

/// Removes an entry; of a directory all that is in it, too. Follows no link.
Status remove_entry(int directory, const std::string& name);

}  // namespace opensandbox::agent
