#pragma once

#include "base/error.hpp"

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

}  // namespace opensandbox::agent
