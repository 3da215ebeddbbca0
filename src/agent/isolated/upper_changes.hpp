#pragma once

#include "base/error.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// One difference between an overlay and its lower directory.
struct UpperChange {
    enum class Kind : unsigned char { added, modified, deleted };
    UpperChange(std::string p, Kind k, const struct stat& i)
        : path(std::move(p)), kind(k), info(i) {}
    std::string path;  ///< relative to the overlay
    Kind kind;
    struct stat info;  ///< what is there now; of a deleted entry what was there
};

/// Says what a directory of uppers changes about `lower`: both are open directories. Whiteouts and
/// opaque directories are understood; what was copied up and is the same as below is no change.
/// Stops after `limit` changes and sets `more`. Blocks.
Result<std::vector<UpperChange>> list_changes(int lower, int upper, std::size_t limit, bool& more);

// What an upper holds, for those who walk one.

/// A device 0/0: the entry of this name is deleted.
bool is_whiteout(const struct stat& info);
/// A directory whose lower namesake does not show through.
bool is_opaque(int directory);
/// The names in a directory, sorted.
Result<std::vector<std::string>> names_in(int directory);
/// Opens a directory below another without following a link.
int open_below(int directory, const std::string& name);
/// Where a link leads.
Result<std::string> read_link(int directory, const std::string& name, const struct stat& info);

}  // namespace opensandbox::agent
