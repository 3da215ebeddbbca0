#pragma once

#include "base/error.hpp"

#include <sys/stat.h>

#include <ctime>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// Which part of an overlay is committed: entries at or below any of these paths, relative to the
/// overlay; an empty list means all.
using Selection = std::vector<std::string>;

/// Entries of `lower` that someone else changed after `since` and that a commit would overwrite or
/// delete; at most ten. Blocks.
Result<std::vector<std::string>> find_conflicts(int lower, int upper, const Selection& selection,
                                                const timespec& since);

/// Makes `lower` what the overlay shows, for the selected part, and takes what was applied out of
/// `upper`. Files appear whole (a new file is renamed over the old one); owners, modes, times,
/// links, attributes and names of one file are kept. No mount may use `upper` meanwhile. An error
/// leaves the rest of the upper for another try. Blocks.
Status commit_upper(int lower, int upper, const Selection& selection);

// How one entry is taken over.

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
